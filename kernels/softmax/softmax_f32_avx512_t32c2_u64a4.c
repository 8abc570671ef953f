/// softmax, f32, AVX-512.
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal. exp is vec_avx512_exp(): a table of 32 (the method of P. T. P. Tang, ACM TOMS
/// 15(2), 1989, pp. 144-157) and a quadratic.
///
/// Error: 1.74 ULP of exp, n/64 + 9 additions of the sum in the longest chain, the reciprocal
/// and the last product; and, for a score at the distance |d| from the maximum, the rounding of
/// that distance, |d| * 2^-24 of the result. Registers: 4 vectors at a time through exp, 4
/// accumulators, 10 constants. Tail: up to 3 whole vectors and a masked one; masked lanes are not
/// accessed.
#include <math.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"
#include "vec_avx512.h"

enum { LANES = 16, STEP = 4 * LANES };

/// Gets the largest of x[0..n), NaN left out; -inf when there is none.
static inline float largest_of(const float *x, size_t n) {
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    // vmaxps gives its second operand when either is NaN: no accumulator ever becomes NaN.
    for (; i + STEP <= n; i += STEP) {
        m0 = _mm512_max_ps(_mm512_loadu_ps(x + i), m0);
        m1 = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), m1);
        m2 = _mm512_max_ps(_mm512_loadu_ps(x + i + 32), m2);
        m3 = _mm512_max_ps(_mm512_loadu_ps(x + i + 48), m3);
    }
    for (; i + LANES <= n; i += LANES) {
        m0 = _mm512_max_ps(_mm512_loadu_ps(x + i), m0);
    }
    if (i < n) {
        m1 = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, vec_avx512_mask(n - i), x + i), m1);
    }
    return vec_avx512_reduce_max(_mm512_max_ps(_mm512_max_ps(m0, m1), _mm512_max_ps(m2, m3)));
}

static inline void scale(float *y, size_t n, __m512 factor) {
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        for (size_t j = i; j < i + STEP; j += LANES) {
            _mm512_storeu_ps(y + j, _mm512_mul_ps(_mm512_loadu_ps(y + j), factor));
        }
    }
    for (; i < n; i += LANES) {
        _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(y + i), factor));
    }
}

/// Stores exp(x[0..16) - reference) to y and gets it.
static inline __m512 exp_vector(const float *x, float *y, __m512 reference) {
    const __m512 e = vec_avx512_exp(_mm512_sub_ps(_mm512_loadu_ps(x), reference));
    _mm512_storeu_ps(y, e);
    return e;
}

static void span_softmax(const float *x, float *y, size_t n) {
    const __m512 reference = _mm512_set1_ps(softmax_reference(largest_of(x, n)));
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        s0 = _mm512_add_ps(s0, exp_vector(x + i, y + i, reference));
        s1 = _mm512_add_ps(s1, exp_vector(x + i + 16, y + i + 16, reference));
        s2 = _mm512_add_ps(s2, exp_vector(x + i + 32, y + i + 32, reference));
        s3 = _mm512_add_ps(s3, exp_vector(x + i + 48, y + i + 48, reference));
    }
    for (; i + LANES <= n; i += LANES) {
        s0 = _mm512_add_ps(s0, exp_vector(x + i, y + i, reference));
    }
    const __mmask16 mask = vec_avx512_mask(n - i);
    __m512 tail = _mm512_setzero_ps();
    if (i < n) {
        const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), mask, x + i);
        tail = vec_avx512_exp(_mm512_sub_ps(v, reference));
        s1 = _mm512_add_ps(s1, tail);
    }
    const __m512 sum = _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3));
    const __m512 factor = _mm512_set1_ps(softmax_factor(vec_avx512_reduce_add(sum)));
    scale(y, i, factor);
    if (i < n) {
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(tail, factor));
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        _mm512_storeu_ps(y + i, vec_avx512_exp(_mm512_loadu_ps(x + i)));
    }
    if (i < count) {
        const __mmask16 mask = vec_avx512_mask(count - i);
        _mm512_mask_storeu_ps(y + i, mask, vec_avx512_exp(_mm512_maskz_loadu_ps(mask, x + i)));
    }
}

const struct mha_kernel softmax_f32_avx512_t32c2_u64a4 = {
    .name = "softmax_f32_avx512_t32c2_u64a4",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "t32c2_u64a4",
    .summary = "three passes; exp by a table of 32 and a quadratic",
    .run = {.softmax = run},
    .step = STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
