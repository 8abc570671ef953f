/// The register tile and the packer of the GEMM-shaped ops at the NEON level; gemm.h has the layout
/// and the contract.
///
/// Tile: 8 x 8: 16 accumulators (four multiply-adds a cycle of latency 4 need 16), 8 rows of A by
/// 4 of depth, whose lanes the multiply-adds take directly, and 2 of B: 26 of 32 registers; 16
/// loads feed 64 multiply-adds.
#ifndef MHA_GEMM_NEON_H
#define MHA_GEMM_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "gemm.h"
#include "vec_neon.h"
#include "widen_neon.h"

enum { GEMM_NEON_MR = 8, GEMM_NEON_NR = 8 };

/// gemm_rows_fn of this level.
static inline size_t gemm_neon_rows(size_t left, size_t cols) {
    (void)cols;  // at most one of two vectors goes unused
    return gemm_tile_rows(left, GEMM_NEON_MR);
}

/// One step of depth for the rows [first, last) out of `rows`, all of which are constants where it
/// is called.
__attribute__((always_inline)) static inline void gemm_neon_step(const size_t rows,
                                                                 const size_t first,
                                                                 const size_t last, const float *a,
                                                                 size_t a_stride, const float *b,
                                                                 float32x4_t sum[GEMM_NEON_MR][2]) {
    const float32x4_t b0 = vld1q_f32(b);
    const float32x4_t b1 = vld1q_f32(b + 4);
#pragma GCC unroll 8
    for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
        if (r < first || r >= last) {
            continue;
        }
        const float32x4_t y = vld1q_dup_f32(a + r * a_stride);
        sum[r][0] = vfmaq_f32(sum[r][0], b0, y);
        sum[r][1] = vfmaq_f32(sum[r][1], b1, y);
    }
}

/// The steps of enum gemm_stairs before the tile, or those after it, from `a` and `b` on.
__attribute__((always_inline)) static inline void gemm_neon_stairs_of(
    const size_t rows, const bool after, const float *a, size_t a_stride, const float *b,
    size_t b_stride, float32x4_t sum[GEMM_NEON_MR][2]) {
#pragma GCC unroll 8
    for (size_t p = 0; p + 1 < rows; p++) {
        gemm_neon_step(rows, after ? p + 1 : 0, after ? rows : p + 1, a + p, a_stride,
                       b + p * b_stride, sum);
    }
}

/// The tile for a number of rows that is a constant where it is called. `stairs` is of enum
/// gemm_stairs.
__attribute__((always_inline)) static inline void gemm_neon_tile_of(
    const size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    float32x4_t sum[GEMM_NEON_MR][2];
    float32x4_t x[GEMM_NEON_MR];
#pragma GCC unroll 8
    for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
        const float *from = c + r * c_stride;
        sum[r][0] = vdupq_n_f32(0.0f);
        sum[r][1] = vdupq_n_f32(0.0f);
        if (add) {
            sum[r][0] = cols < 4 ? vec_neon_load_tail(from, cols, 0.0f) : vld1q_f32(from);
        }
        if (add && cols > 4) {
            sum[r][1] = cols < GEMM_NEON_NR ? vec_neon_load_tail(from + 4, cols - 4, 0.0f)
                                            : vld1q_f32(from + 4);
        }
    }
    if ((stairs & GEMM_STAIRS_BEFORE) != 0) {
        gemm_neon_stairs_of(rows, false, a - (rows - 1), a_stride, b - (rows - 1) * b_stride,
                            b_stride, sum);
    }
    size_t p = 0;
    for (; p + 4 <= depth; p += 4) {
        const float *row = b + p * b_stride;
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            x[r] = vld1q_f32(a + r * a_stride + p);
        }
        float32x4_t b0 = vld1q_f32(row);
        float32x4_t b1 = vld1q_f32(row + 4);
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            sum[r][0] = vfmaq_laneq_f32(sum[r][0], b0, x[r], 0);
            sum[r][1] = vfmaq_laneq_f32(sum[r][1], b1, x[r], 0);
        }
        b0 = vld1q_f32(row + b_stride);
        b1 = vld1q_f32(row + b_stride + 4);
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            sum[r][0] = vfmaq_laneq_f32(sum[r][0], b0, x[r], 1);
            sum[r][1] = vfmaq_laneq_f32(sum[r][1], b1, x[r], 1);
        }
        b0 = vld1q_f32(row + 2 * b_stride);
        b1 = vld1q_f32(row + 2 * b_stride + 4);
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            sum[r][0] = vfmaq_laneq_f32(sum[r][0], b0, x[r], 2);
            sum[r][1] = vfmaq_laneq_f32(sum[r][1], b1, x[r], 2);
        }
        b0 = vld1q_f32(row + 3 * b_stride);
        b1 = vld1q_f32(row + 3 * b_stride + 4);
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            sum[r][0] = vfmaq_laneq_f32(sum[r][0], b0, x[r], 3);
            sum[r][1] = vfmaq_laneq_f32(sum[r][1], b1, x[r], 3);
        }
    }
    for (; p < depth; p++) {
        gemm_neon_step(rows, 0, rows, a + p, a_stride, b + p * b_stride, sum);
    }
    if ((stairs & GEMM_STAIRS_AFTER) != 0) {
        gemm_neon_stairs_of(rows, true, a + depth, a_stride, b + depth * b_stride, b_stride, sum);
    }
    if (cols == GEMM_NEON_NR) {
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            vst1q_f32(c + r * c_stride, sum[r][0]);
            vst1q_f32(c + r * c_stride + 4, sum[r][1]);
        }
    } else {
#pragma GCC unroll 8
        for (size_t r = 0; r < GEMM_NEON_MR && r < rows; r++) {
            float *to = c + r * c_stride;
            if (cols < 4) {
                vec_neon_store_tail(to, sum[r][0], cols);
            } else {
                vst1q_f32(to, sum[r][0]);
                vec_neon_store_tail(to + 4, sum[r][1], cols - 4);
            }
        }
    }
}

/// The tile for a number of rows that gemm_neon_rows() gives.
__attribute__((always_inline)) static inline void gemm_neon_tile_by(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    switch (rows) {
        case 1:
            gemm_neon_tile_of(1, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 2:
            gemm_neon_tile_of(2, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 3:
            gemm_neon_tile_of(3, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 4:
            gemm_neon_tile_of(4, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 5:
            gemm_neon_tile_of(5, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 6:
            gemm_neon_tile_of(6, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        case 7:
            gemm_neon_tile_of(7, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
            break;
        default:
            gemm_neon_tile_of(GEMM_NEON_MR, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
    }
}

/// gemm_tile_fn of this level. Not inlined: among the loops around them, those in here would
/// run out of registers for addresses.
__attribute__((noinline, unused)) static void gemm_neon_tile(size_t rows, size_t cols, size_t depth,
                                                             const float *a, size_t a_stride,
                                                             const float *b, size_t b_stride,
                                                             bool add, float *c, size_t c_stride) {
    gemm_neon_tile_by(rows, cols, depth, a, a_stride, b, b_stride, 0, add, c, c_stride);
}

/// gemm_stairs_fn of this level.
__attribute__((noinline, unused)) static void gemm_neon_tile_stairs(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    gemm_neon_tile_by(rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
}

/// gemm_next_fn of this level: at once, into L1.
__attribute__((noinline, unused)) static void gemm_neon_tile_next(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    if (next != NULL) {
        gemm_prefetch(WIDEN_F32, rows, depth, next, a_stride);
    }
    gemm_neon_tile_by(rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
}

/// The tile of one row, which adds to C: what a mask leaves to single rows is a few steps of depth,
/// and a call would cost as much as they do.
static inline void gemm_neon_tile_row(size_t cols, size_t depth, const float *a, const float *b,
                                      size_t b_stride, float *c) {
    gemm_neon_tile_of(1, cols, depth, a, 0, b, b_stride, 0, true, c, 0);
}

/// Transposes 4 x 4: column[j] gets element j of the 4 rows.
static inline void gemm_neon_transpose(const float32x4_t row[4], float32x4_t column[4]) {
    const float64x2_t t0 = vreinterpretq_f64_f32(vtrn1q_f32(row[0], row[1]));
    const float64x2_t t1 = vreinterpretq_f64_f32(vtrn2q_f32(row[0], row[1]));
    const float64x2_t t2 = vreinterpretq_f64_f32(vtrn1q_f32(row[2], row[3]));
    const float64x2_t t3 = vreinterpretq_f64_f32(vtrn2q_f32(row[2], row[3]));
    column[0] = vreinterpretq_f32_f64(vtrn1q_f64(t0, t2));
    column[1] = vreinterpretq_f32_f64(vtrn1q_f64(t1, t3));
    column[2] = vreinterpretq_f32_f64(vtrn2q_f64(t0, t2));
    column[3] = vreinterpretq_f32_f64(vtrn2q_f64(t1, t3));
}

/// Packs B = alpha * transpose(bt), bt [cols, depth] row-major at any alignment: what S = Q * K^T
/// asks for. `packed` is 64-byte aligned and gemm_packed_count() long.
static inline void gemm_neon_pack_transposed(const float *bt, size_t bt_stride, size_t cols,
                                             size_t depth, float alpha, float *packed) {
    // A panel is two halves of 4 columns.
    for (size_t first = 0; first < gemm_packed_count(1, cols, GEMM_NEON_NR); first += 4) {
        const size_t left = first < cols ? cols - first : 0;
        const float *from = bt + (left > 0 ? first : 0) * bt_stride;
        float *to = packed + first / GEMM_NEON_NR * GEMM_NEON_NR * depth + first % GEMM_NEON_NR;
        float32x4_t row[4];
        float32x4_t column[4];
        for (size_t p = 0; p < depth; p += 4) {
            const size_t width = depth - p < 4 ? depth - p : 4;
            for (size_t i = 0; i < 4; i++) {
                if (i >= left) {
                    row[i] = vdupq_n_f32(0.0f);
                } else if (width == 4) {
                    row[i] = vld1q_f32(from + i * bt_stride + p);
                } else {
                    row[i] = vec_neon_load_tail(from + i * bt_stride + p, width, 0.0f);
                }
            }
            gemm_neon_transpose(row, column);
            for (size_t j = 0; j < width; j++) {
                vst1q_f32(to + (p + j) * GEMM_NEON_NR, vmulq_n_f32(column[j], alpha));
            }
        }
    }
}

/// Packs B [depth, cols] at any alignment. `packed` is 64-byte aligned and gemm_packed_count()
/// long.
static inline void gemm_neon_pack(const float *b, size_t b_stride, size_t cols, size_t depth,
                                  float *packed) {
    // Row by row, as B lies in memory; the panels are written side by side.
    for (size_t p = 0; p < depth; p++) {
        const float *from = b + p * b_stride;
        float *to = packed + p * GEMM_NEON_NR;
        size_t col = 0;
        for (; col + GEMM_NEON_NR <= cols; col += GEMM_NEON_NR) {
            vst1q_f32(to + col * depth, vld1q_f32(from + col));
            vst1q_f32(to + col * depth + 4, vld1q_f32(from + col + 4));
        }
        for (size_t v = 0; col + v * 4 < gemm_packed_count(1, cols, GEMM_NEON_NR); v++) {
            const size_t left = col + v * 4 < cols ? cols - col - v * 4 : 0;
            const float *at = from + (left > 0 ? col + v * 4 : 0);
            vst1q_f32(to + col * depth + v * 4,
                      left < 4 ? vec_neon_load_tail(at, left, 0.0f) : vld1q_f32(at));
        }
    }
}

#endif
