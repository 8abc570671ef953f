/// softmax, f32, AVX2 with streaming stores and prefetch of the row to come.
///
/// Algorithm: softmax_nt.inl, with the passes and the exponential of
/// softmax_f32_avx2_t8c3_u16a2.
///
/// Error: 1.16 ULP of exp, and the rest as there: the same instructions. Registers: as there. Tail:
/// masked loads, and stores of halves and elements.
#include "softmax/softmax_avx2.h"

static inline void scale(const float *e, float *y, size_t n, __m256 factor) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX2_LANES <= n; i += SOFTMAX_AVX2_LANES) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(e + i), factor));
    }
    if (i < n) {
        const __m256i mask = vec_avx2_mask(n - i);
        const __m256 v = _mm256_mul_ps(_mm256_maskload_ps(e + i, mask), factor);
        vec_avx2_store_tail(y + i, v, n - i);
    }
}

static inline void stream_scaled(const float *e, float *y, __m256 factor) {
    _mm256_stream_ps(y, _mm256_mul_ps(_mm256_loadu_ps(e), factor));
    _mm256_stream_ps(y + 8, _mm256_mul_ps(_mm256_loadu_ps(e + 8), factor));
}

static inline void stream_zeros(float *y) {
    _mm256_stream_ps(y, _mm256_setzero_ps());
    _mm256_stream_ps(y + 8, _mm256_setzero_ps());
}

#define SOFTMAX_LANES SOFTMAX_AVX2_LANES
#define SOFTMAX_SUM struct softmax_avx2_sum
#define SOFTMAX_LARGEST softmax_avx2_largest
#define SOFTMAX_EXPS softmax_avx2_exps
#define SOFTMAX_SET _mm256_set1_ps
#define SOFTMAX_VECTOR __m256
#define SOFTMAX_STORE _mm256_storeu_ps
#include "softmax/softmax_nt.inl"

const struct mha_kernel softmax_f32_avx2_t8c3_nt = {
    .name = "softmax_f32_avx2_t8c3_nt",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "t8c3_nt",
    .summary = "three passes in the workspace, streaming stores past the caches, prefetch",
    .run = {.softmax = run},
    .workspace_bytes = workspace_bytes,
    .step = SOFTMAX_AVX2_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = softmax_avx2_exp_f32,
};
