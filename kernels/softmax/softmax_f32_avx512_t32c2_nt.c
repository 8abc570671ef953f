/// softmax, f32, AVX-512 with streaming stores and prefetch of the row to come.
///
/// Algorithm: softmax_nt.inl, with the passes and the exponential of
/// softmax_f32_avx512_t32c2_u64a4.
///
/// Error: 1.83 ULP of exp, and the rest as there: the same instructions. Registers: as there. Tail:
/// masked loads and stores.
#include "softmax/softmax_avx512.h"

static inline void scale(const float *e, float *y, size_t n, __m512 factor) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX512_LANES <= n; i += SOFTMAX_AVX512_LANES) {
        _mm512_storeu_ps(y + i, _mm512_mul_ps(_mm512_loadu_ps(e + i), factor));
    }
    if (i < n) {
        const __mmask16 mask = vec_avx512_mask(n - i);
        const __m512 v = _mm512_maskz_loadu_ps(mask, e + i);
        _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(v, factor));
    }
}

static inline void stream_scaled(const float *e, float *y, __m512 factor) {
    _mm512_stream_ps(y, _mm512_mul_ps(_mm512_loadu_ps(e), factor));
}

static inline void stream_zeros(float *y) {
    _mm512_stream_ps(y, _mm512_setzero_ps());
}

#define SOFTMAX_LANES SOFTMAX_AVX512_LANES
#define SOFTMAX_SUM struct softmax_avx512_sum
#define SOFTMAX_LARGEST softmax_avx512_largest
#define SOFTMAX_EXPS softmax_avx512_exps
#define SOFTMAX_SET _mm512_set1_ps
#define SOFTMAX_VECTOR __m512
#define SOFTMAX_STORE _mm512_storeu_ps
#include "softmax/softmax_nt.inl"

const struct mha_kernel softmax_f32_avx512_t32c2_nt = {
    .name = "softmax_f32_avx512_t32c2_nt",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "t32c2_nt",
    .summary = "three passes in the workspace, streaming stores past the caches, prefetch",
    .run = {.softmax = run},
    .workspace_bytes = workspace_bytes,
    .step = SOFTMAX_AVX512_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = softmax_avx512_exp_f32,
};
