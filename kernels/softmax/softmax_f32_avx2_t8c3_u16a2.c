/// softmax, f32, AVX2.
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal (softmax_passes.inl). exp is a power of 2, vec_avx2_power(): a table of 8 (the
/// method of P. T. P. Tang, ACM TOMS 15(2), 1989, pp. 144-157) and a cubic.
///
/// Error: 1.16 ULP of exp, n/16 + 5 additions of the sum in the longest chain, the reciprocal
/// and the last product; and, for a score at the distance |d| from the maximum, the rounding of
/// log2(e), 0.23 |d| 2^-24 of the result. Registers: exp has 7 constants, which leaves 9 of 16
/// registers: more than 2 vectors at a time would spill. Tail: masked loads and stores of halves
/// and elements; its exponentials wait in a register.
#include "softmax/softmax_avx2.h"
#include "vec_avx2.h"

static inline void scale(float *y, size_t n, __m256 factor) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX2_STEP <= n; i += SOFTMAX_AVX2_STEP) {
        for (size_t j = i; j < i + SOFTMAX_AVX2_STEP; j += SOFTMAX_AVX2_LANES) {
            _mm256_storeu_ps(y + j, _mm256_mul_ps(_mm256_loadu_ps(y + j), factor));
        }
    }
    for (; i < n; i += SOFTMAX_AVX2_LANES) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(y + i), factor));
    }
}

static inline void store_tail(float *y, __m256 tail, size_t n, __m256 factor) {
    vec_avx2_store_tail(y, _mm256_mul_ps(tail, factor), n);
}

#define SOFTMAX_LANES SOFTMAX_AVX2_LANES
#define SOFTMAX_VECTOR __m256
#define SOFTMAX_SUM struct softmax_avx2_sum
#define SOFTMAX_LARGEST softmax_avx2_largest
#define SOFTMAX_EXPS softmax_avx2_exps
#define SOFTMAX_SET _mm256_set1_ps
#define SOFTMAX_STORE _mm256_storeu_ps
#include "softmax/softmax_passes.inl"

const struct mha_kernel softmax_f32_avx2_t8c3_u16a2 = {
    .name = "softmax_f32_avx2_t8c3_u16a2",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "t8c3_u16a2",
    .summary = "three passes; exp by a table of 8 and a cubic",
    .run = {.softmax = run},
    .step = SOFTMAX_AVX2_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = softmax_avx2_exp_f32,
};
