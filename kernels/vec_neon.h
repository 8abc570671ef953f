/// Static inline helpers of the NEON level (ARMv8-A), shared by the kernels of several ops.
#ifndef MHA_VEC_NEON_H
#define MHA_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "vec.h"

/// Loads the first `n` < 4 floats and sets the other lanes to `fill`; reads nothing past them.
static inline float32x4_t vec_neon_load_tail(const float *p, size_t n, float fill) {
    float32x4_t v = vdupq_n_f32(fill);
    if (n > 0) {
        v = vld1q_lane_f32(p, v, 0);
    }
    if (n > 1) {
        v = vld1q_lane_f32(p + 1, v, 1);
    }
    if (n > 2) {
        v = vld1q_lane_f32(p + 2, v, 2);
    }
    return v;
}

/// Stores the first `n` < 4 lanes.
static inline void vec_neon_store_tail(float *p, float32x4_t v, size_t n) {
    if (n > 0) {
        vst1q_lane_f32(p, v, 0);
    }
    if (n > 1) {
        vst1q_lane_f32(p + 1, v, 1);
    }
    if (n > 2) {
        vst1q_lane_f32(p + 2, v, 2);
    }
}

/// Computes 2^d, or 2^(d + *below) with `below` smaller than a rounding of d, for d <= 1, -inf
/// (exactly 0) or NaN (NaN). `below` is a constant NULL, or is not, where this is inlined.
__attribute__((always_inline)) static inline float32x4_t vec_neon_power(float32x4_t d,
                                                                        const float32x4_t *below) {
    // 1.5 * 2^23 + 127: adding it leaves n + 127, rounded to nearest, in the low bits of the sum; a
    // shift then makes the bits of 2^n of it.
    const float32x4_t magic = vdupq_n_f32(0x1.8000fep+23f);
    // 2^r ~ 1 + c1 r + ... + c5 r^5, minimax in the relative error (Remez): 1.54 * 2^-24.
    const float32x4_t c1 = vdupq_n_f32(0x1.62e42ap-1f);
    const float32x4_t c2 = vdupq_n_f32(0x1.ebf9bap-3f);
    const float32x4_t c3 = vdupq_n_f32(0x1.c6b758p-5f);
    const float32x4_t c4 = vdupq_n_f32(0x1.3ceafap-7f);
    const float32x4_t c5 = vdupq_n_f32(0x1.5bb99ep-10f);
    // False for a NaN, which so stays one.
    const uint32x4_t tiny = vcltq_f32(d, vdupq_n_f32(-126.0f));

    const float32x4_t t = vaddq_f32(d, magic);
    const float32x4_t scale = vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(t), 23));
    float32x4_t r = vsubq_f32(d, vsubq_f32(t, magic));
    if (below) {
        r = vaddq_f32(r, *below);
    }
    float32x4_t p = vfmaq_f32(c4, c5, r);
    p = vfmaq_f32(c3, p, r);
    p = vfmaq_f32(c2, p, r);
    p = vfmaq_f32(c1, p, r);
    const float32x4_t e = vfmaq_f32(scale, vmulq_f32(scale, r), p);
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(e), tiny));
}

/// Computes 2^d for d <= 1, -inf (exactly 0) or NaN (NaN). Error <= 2.06 ULP (every f32 was tried
/// against double, in a model whose bits equal those of this code); 0 where 2^d < 2^-126.
///
/// d = n + r with n an integer and |r| <= 1/2, so 2^d = 2^n * 2^r; 2^r is a polynomial of degree 5.
/// A table, as on x86, does not pay: NEON looks bytes up, not floats.
static inline float32x4_t vec_neon_exp2(float32x4_t d) {
    return vec_neon_power(d, NULL);
}

#endif
