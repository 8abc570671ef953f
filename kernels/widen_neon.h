/// Vectors of widened elements at the NEON level; see widen.h. bf16 is shifted to where a float has
/// its upper half (shll), f16 is converted (fcvtl).
#ifndef MHA_WIDEN_NEON_H
#define MHA_WIDEN_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "vec_neon.h"
#include "widen.h"

/// Widens 4 elements of two bytes.
static inline float32x4_t widen_neon_halves(const enum widen_type type, uint16x4_t bits) {
    return type == WIDEN_BF16 ? vreinterpretq_f32_u32(vshll_n_u16(bits, 16))
                              : vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

/// Loads 4 elements of p from `index` on.
static inline float32x4_t widen_neon_load(const enum widen_type type, const void *p, size_t index) {
    const void *at = widen_at(type, p, index);
    return type == WIDEN_F32 ? vld1q_f32(at) : widen_neon_halves(type, vld1_u16(at));
}

/// Loads the first n < 4 of them; the other lanes are zeros. Reads nothing behind them.
static inline float32x4_t widen_neon_tail(const enum widen_type type, const void *p, size_t index,
                                          size_t n) {
    const void *at = widen_at(type, p, index);
    if (type == WIDEN_F32) {
        return vec_neon_load_tail(at, n, 0.0f);
    }
    const uint16_t *one = at;
    uint16x4_t bits = vdup_n_u16(0);
    if (n > 0) {
        bits = vld1_lane_u16(one, bits, 0);
    }
    if (n > 1) {
        bits = vld1_lane_u16(one + 1, bits, 1);
    }
    if (n > 2) {
        bits = vld1_lane_u16(one + 2, bits, 2);
    }
    return widen_neon_halves(type, bits);
}

/// Widens `rows` rows of `count` elements to floats. Between the rows of `to` it writes nothing.
static inline void widen_neon_rows(const enum widen_type type, size_t rows, size_t count,
                                   const void *from, size_t from_stride, float *to,
                                   size_t to_stride) {
    for (size_t r = 0; r < rows; r++) {
        const void *row = widen_at(type, from, r * from_stride);
        float *out = to + r * to_stride;
        size_t i = 0;
        for (; i + 4 <= count; i += 4) {
            vst1q_f32(out + i, widen_neon_load(type, row, i));
        }
        if (i < count) {
            vec_neon_store_tail(out + i, widen_neon_tail(type, row, i, count - i), count - i);
        }
    }
}

#endif
