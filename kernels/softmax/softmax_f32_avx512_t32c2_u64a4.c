/// softmax, f32, AVX-512.
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal (softmax_passes.inl). exp is a power of 2, vec_avx512_exp2(): a table of 32
/// (the method of P. T. P. Tang, ACM TOMS 15(2), 1989, pp. 144-157) and a quadratic.
///
/// Error: 1.83 ULP of exp, n/64 + 9 additions of the sum in the longest chain, the reciprocal
/// and the last product; and, for a score at the distance |d| from the maximum, the rounding of
/// |d| log2(e) and of that constant, 1.23 |d| 2^-24 of the result. Registers: 4 vectors at a time
/// through exp, 4 accumulators, 8 constants. Tail: up to 3 whole vectors and a masked one; masked
/// lanes are not accessed.
#include "softmax/softmax_avx512.h"
#include "vec_avx512.h"

static inline void scale(float *y, size_t n, __m512 factor) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX512_STEP <= n; i += SOFTMAX_AVX512_STEP) {
        for (size_t j = i; j < i + SOFTMAX_AVX512_STEP; j += SOFTMAX_AVX512_LANES) {
            _mm512_storeu_ps(y + j, _mm512_mul_ps(_mm512_loadu_ps(y + j), factor));
        }
    }
    for (; i < n; i += SOFTMAX_AVX512_LANES) {
        _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(y + i), factor));
    }
}

static inline void store_tail(float *y, __m512 tail, size_t n, __m512 factor) {
    if (n > 0) {
        _mm512_mask_storeu_ps(y, vec_avx512_mask(n), _mm512_mul_ps(tail, factor));
    }
}

#define SOFTMAX_LANES SOFTMAX_AVX512_LANES
#define SOFTMAX_VECTOR __m512
#define SOFTMAX_SUM struct softmax_avx512_sum
#define SOFTMAX_LARGEST softmax_avx512_largest
#define SOFTMAX_EXPS softmax_avx512_exps
#define SOFTMAX_SET _mm512_set1_ps
#define SOFTMAX_STORE _mm512_storeu_ps
#include "softmax/softmax_passes.inl"

const struct mha_kernel softmax_f32_avx512_t32c2_u64a4 = {
    .name = "softmax_f32_avx512_t32c2_u64a4",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "t32c2_u64a4",
    .summary = "three passes; exp by a table of 32 and a quadratic",
    .run = {.softmax = run},
    .step = SOFTMAX_AVX512_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = softmax_avx512_exp_f32,
};
