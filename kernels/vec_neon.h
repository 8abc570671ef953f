/// Static inline helpers of the NEON level (ARMv8-A), shared by the kernels of several ops.
#ifndef MHA_VEC_NEON_H
#define MHA_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
