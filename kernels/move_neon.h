/// Row movers of the NEON level: what its concat, split and copy are made of.
///
/// Tails: the last vector of a row that is at least one vector long starts early and overlaps the
/// one before, since the same elements are stored twice with the same value; shorter rows go by
/// element. Both touch the row's own elements only.
#ifndef MHA_MOVE_NEON_H
#define MHA_MOVE_NEON_H

#include <arm_neon.h>
#include <stddef.h>

/// Elements of the main loop: 8 vectors, which compilers join to 4 pairs.
enum { MOVE_NEON_STEP = 32 };

/// Elements of one non-temporal store pair.
enum { MOVE_NEON_PAIR = 8 };

/// See move_row_fn.
__attribute__((always_inline)) static inline void move_neon_row(size_t n, const float *x,
                                                                float *y) {
    if (n >= 4) {
        size_t i = 0;
        for (; n - i >= MOVE_NEON_STEP; i += MOVE_NEON_STEP) {
            const float32x4_t v0 = vld1q_f32(x + i);
            const float32x4_t v1 = vld1q_f32(x + i + 4);
            const float32x4_t v2 = vld1q_f32(x + i + 8);
            const float32x4_t v3 = vld1q_f32(x + i + 12);
            const float32x4_t v4 = vld1q_f32(x + i + 16);
            const float32x4_t v5 = vld1q_f32(x + i + 20);
            const float32x4_t v6 = vld1q_f32(x + i + 24);
            const float32x4_t v7 = vld1q_f32(x + i + 28);
            vst1q_f32(y + i, v0);
            vst1q_f32(y + i + 4, v1);
            vst1q_f32(y + i + 8, v2);
            vst1q_f32(y + i + 12, v3);
            vst1q_f32(y + i + 16, v4);
            vst1q_f32(y + i + 20, v5);
            vst1q_f32(y + i + 24, v6);
            vst1q_f32(y + i + 28, v7);
        }
        for (; n - i >= 4; i += 4) {
            vst1q_f32(y + i, vld1q_f32(x + i));
        }
        if (i < n) {
            vst1q_f32(y + n - 4, vld1q_f32(x + n - 4));
        }
    } else {
        if (n > 0) {
            y[0] = x[0];
        }
        if (n > 1) {
            y[1] = x[1];
        }
        if (n > 2) {
            y[2] = x[2];
        }
    }
}

/// Stores two vectors with the hint that they are not needed again soon. No intrinsic exists that
/// all compilers know; unlike x86's streaming stores, STNP needs no alignment and no fence.
static inline void move_neon_store_nt(float *y, float32x4_t v0, float32x4_t v1) {
    float(*pair)[MOVE_NEON_PAIR] = (float(*)[MOVE_NEON_PAIR])y;
    __asm__("stnp %q1, %q2, [%3]" : "=m"(*pair) : "w"(v0), "w"(v1), "r"(y));
}

/// Copies a row past the caches where the processor follows the hint.
__attribute__((always_inline)) static inline void move_neon_row_nt(size_t n, const float *x,
                                                                   float *y) {
    size_t i = 0;
    for (; n - i >= (size_t)2 * MOVE_NEON_PAIR; i += (size_t)2 * MOVE_NEON_PAIR) {
        const float32x4_t v0 = vld1q_f32(x + i);
        const float32x4_t v1 = vld1q_f32(x + i + 4);
        const float32x4_t v2 = vld1q_f32(x + i + 8);
        const float32x4_t v3 = vld1q_f32(x + i + 12);
        move_neon_store_nt(y + i, v0, v1);
        move_neon_store_nt(y + i + MOVE_NEON_PAIR, v2, v3);
    }
    move_neon_row(n - i, x + i, y + i);
}

#endif
