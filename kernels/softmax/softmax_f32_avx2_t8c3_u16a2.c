/// softmax, f32, AVX2.
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal. exp is vec_avx2_exp(): a table of 8 (the method of P. T. P. Tang, ACM TOMS
/// 15(2), 1989, pp. 144-157) and a cubic.
///
/// Error: 1.14 ULP of exp, n/16 + 5 additions of the sum in the longest chain, the reciprocal
/// and the last product; and, for a score at the distance |d| from the maximum, the rounding of
/// that distance, |d| * 2^-24 of the result. Registers: exp has 8 constants, which leaves 8 of 16
/// registers: more than 2 vectors at a time would spill. Tail: masked loads and one masked store;
/// its exponentials wait in a register.
#include <math.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"
#include "vec_avx2.h"

/// Elements of a vector; of a step of the exp loop; of a step of the two other loops.
enum { LANES = 8, STEP = 2 * LANES, WIDE_STEP = 4 * LANES };

/// Gets the largest of x[0..n), NaN left out; -inf when there is none.
static inline float largest_of(const float *x, size_t n) {
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    // vmaxps gives its second operand when either is NaN: no accumulator ever becomes NaN.
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        m0 = _mm256_max_ps(_mm256_loadu_ps(x + i), m0);
        m1 = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), m1);
        m2 = _mm256_max_ps(_mm256_loadu_ps(x + i + 16), m2);
        m3 = _mm256_max_ps(_mm256_loadu_ps(x + i + 24), m3);
    }
    for (; i + LANES <= n; i += LANES) {
        m0 = _mm256_max_ps(_mm256_loadu_ps(x + i), m0);
    }
    if (i < n) {
        m1 = _mm256_max_ps(vec_avx2_load_tail(x + i, vec_avx2_mask(n - i), lowest), m1);
    }
    return vec_avx2_reduce_max(_mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3)));
}

static inline void scale(float *y, size_t n, __m256 factor) {
    size_t i = 0;
    for (; i + WIDE_STEP <= n; i += WIDE_STEP) {
        for (size_t j = i; j < i + WIDE_STEP; j += LANES) {
            _mm256_storeu_ps(y + j, _mm256_mul_ps(_mm256_loadu_ps(y + j), factor));
        }
    }
    for (; i < n; i += LANES) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), factor));
    }
}

/// Stores exp(x[0..8) - reference) to y and gets it.
static inline __m256 exp_vector(const float *x, float *y, __m256 reference) {
    const __m256 e = vec_avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(x), reference));
    _mm256_storeu_ps(y, e);
    return e;
}

static void span_softmax(const float *x, float *y, size_t n) {
    const __m256 reference = _mm256_set1_ps(softmax_reference(largest_of(x, n)));
    __m256 s0 = _mm256_setzero_ps(), s1 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        s0 = _mm256_add_ps(s0, exp_vector(x + i, y + i, reference));
        s1 = _mm256_add_ps(s1, exp_vector(x + i + 8, y + i + 8, reference));
    }
    if (i + LANES <= n) {
        s0 = _mm256_add_ps(s0, exp_vector(x + i, y + i, reference));
        i += LANES;
    }
    const __m256i mask = vec_avx2_mask(n - i);
    __m256 tail = _mm256_setzero_ps();
    if (i < n) {
        const __m256 v = vec_avx2_load_tail(x + i, mask, _mm256_set1_ps(-INFINITY));
        tail = vec_avx2_exp(_mm256_sub_ps(v, reference));
        s1 = _mm256_add_ps(s1, tail);
    }
    const __m256 factor =
        _mm256_set1_ps(softmax_factor(vec_avx2_reduce_add(_mm256_add_ps(s0, s1))));
    scale(y, i, factor);
    if (i < n) {
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(tail, factor));
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        _mm256_storeu_ps(y + i, vec_avx2_exp(_mm256_loadu_ps(x + i)));
    }
    if (i < count) {
        const __m256i mask = vec_avx2_mask(count - i);
        _mm256_maskstore_ps(y + i, mask, vec_avx2_exp(_mm256_maskload_ps(x + i, mask)));
    }
}

const struct mha_kernel softmax_f32_avx2_t8c3_u16a2 = {
    .name = "softmax_f32_avx2_t8c3_u16a2",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "t8c3_u16a2",
    .summary = "three passes; exp by a table of 8 and a cubic",
    .run = {.softmax = run},
    .step = WIDE_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
