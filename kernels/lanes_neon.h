/// One vector of the NEON level under the names that kernels of several ISAs are written in; see
/// lanes.h.
#ifndef MHA_LANES_NEON_H
#define MHA_LANES_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "move_neon.h"
#include "vec_neon.h"

typedef float32x4_t lanes;

enum { LANES = 4 };

static inline lanes lanes_load(const float *p, size_t n) {
    return n >= LANES ? vld1q_f32(p) : vec_neon_load_tail(p, n, 0);
}

/// There are no operands in memory here, and an asm would cost a copy.
static inline lanes lanes_hold(lanes v) {
    return v;
}

static inline void lanes_store(float *p, lanes v, size_t n) {
    if (n >= LANES) {
        vst1q_f32(p, v);
    } else {
        vec_neon_store_tail(p, v, n);
    }
}

static inline void lanes_stream_line(float *p, const lanes *v) {
    move_neon_store_nt(p, v[0], v[1]);
    move_neon_store_nt(p + MOVE_NEON_PAIR, v[2], v[3]);
}

/// STNP keeps the order of plain stores.
static inline void lanes_fence(void) {}

static inline lanes lanes_set(float value) {
    return vdupq_n_f32(value);
}

static inline lanes lanes_index(void) {
    static const float index[LANES] = {0, 1, 2, 3};
    return vld1q_f32(index);
}

static inline lanes lanes_add(lanes a, lanes b) {
    return vaddq_f32(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b) {
    return vsubq_f32(a, b);
}

static inline lanes lanes_mul(lanes a, lanes b) {
    return vmulq_f32(a, b);
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c) {
    return vfmaq_f32(c, a, b);
}

static inline lanes lanes_fnma(lanes a, lanes b, lanes c) {
    return vfmsq_f32(c, a, b);
}

static inline lanes lanes_abs(lanes a) {
    return vabsq_f32(a);
}

static inline lanes lanes_load_twice(const float *p, size_t n) {
    const float32x2_t two = n >= LANES / 2 ? vld1_f32(p) : vdup_n_f32(n > 0 ? p[0] : 0);
    const lanes four = vcombine_f32(two, two);
    return vzip1q_f32(four, four);
}

/// The sign of the even lanes' sines is turned: NEON has no fused add-and-subtract.
static inline lanes lanes_rotate(lanes v, lanes cosines, lanes sines) {
    const uint32x4_t signs = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000u));
    const lanes turned = vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(sines), signs));
    return vfmaq_f32(vmulq_f32(vrev64q_f32(v), turned), v, cosines);
}

#endif
