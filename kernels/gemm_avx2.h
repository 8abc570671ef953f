/// The register tile and the packer of the GEMM-shaped ops at the AVX2 level; gemm.h has the layout
/// and the contract.
///
/// Tile: 3 x 32, register blocking after Goto and van de Geijn for 16 registers: 12 accumulators
/// (two multiply-adds a cycle of latency 4 need 8), 3 broadcasts of A, 1 of B; 7 loads feed 12
/// multiply-adds, one fewer than at 6 x 16, and a row of the tile is two whole cache lines of C.
/// The end of a panel has tiles of the same number of accumulators: 4 x 24, 6 x 16, 12 x 8.
#ifndef MHA_GEMM_AVX2_H
#define MHA_GEMM_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Half of an L2 of 512 KiB. On Zen 3 128 KiB took up to 14 % longer, 1 MiB as long or longer.
#define GEMM_AHEAD_BYTES ((size_t)262144)
#include "gemm.h"
#include "vec_avx2.h"
#include "widen_avx2.h"

enum {
    GEMM_AVX2_MR = 3,
    GEMM_AVX2_NR = 32,
    GEMM_AVX2_VECTORS = GEMM_AVX2_NR / 8,
    GEMM_AVX2_ACCUMULATORS = GEMM_AVX2_MR * GEMM_AVX2_VECTORS,
};

/// Rows of the tile that fills the accumulators with `vectors` of 8 columns.
static inline size_t gemm_avx2_height(size_t vectors) {
    return (size_t)GEMM_AVX2_ACCUMULATORS / vectors;
}

/// gemm_rows_fn of this level.
static inline size_t gemm_avx2_rows(size_t left, size_t cols) {
    const size_t height = gemm_avx2_height((cols + 7) / 8);
    return left >= height ? height : gemm_tile_rows(left, GEMM_AVX2_MR);
}

/// One step of depth: sum[r * vectors + v] += a[r] * b[v] for the rows [first, last) out of `rows`,
/// all of which are constants where it is called, as is the number of vectors.
__attribute__((always_inline)) static inline void gemm_avx2_step(
    const size_t rows, const size_t first, const size_t last, const size_t vectors, const float *a,
    size_t a_stride, const float *b, __m256 sum[GEMM_AVX2_ACCUMULATORS]) {
    // The fewer operands are held, the more pass by: registers are left for no more.
    if (vectors > rows) {
        __m256 x[GEMM_AVX2_ACCUMULATORS];
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            if (r < first || r >= last) {
                continue;
            }
            x[r] = _mm256_broadcast_ss(a + r * a_stride);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < vectors; v++) {
            const __m256 y = _mm256_load_ps(b + v * 8);
#pragma GCC unroll 12
            for (size_t r = 0; r < rows; r++) {
                if (r < first || r >= last) {
                    continue;
                }
                sum[r * vectors + v] = _mm256_fmadd_ps(x[r], y, sum[r * vectors + v]);
            }
        }
        return;
    }
    __m256 y[GEMM_AVX2_VECTORS];
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++) {
        y[v] = _mm256_load_ps(b + v * 8);
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
        if (r < first || r >= last) {
            continue;
        }
        const __m256 x = _mm256_broadcast_ss(a + r * a_stride);
#pragma GCC unroll 4
        for (size_t v = 0; v < vectors; v++) {
            sum[r * vectors + v] = _mm256_fmadd_ps(x, y[v], sum[r * vectors + v]);
        }
    }
}

/// The steps of enum gemm_stairs before the tile, or those after it, from `a` and `b` on.
__attribute__((always_inline)) static inline void gemm_avx2_stairs_of(
    const size_t rows, const size_t vectors, const bool after, const float *a, size_t a_stride,
    const float *b, size_t b_stride, __m256 sum[GEMM_AVX2_ACCUMULATORS]) {
#pragma GCC unroll 12
    for (size_t p = 0; p + 1 < rows; p++) {
        gemm_avx2_step(rows, after ? p + 1 : 0, after ? rows : p + 1, vectors, a + p, a_stride,
                       b + p * b_stride, sum);
    }
}

/// The tile for numbers of rows and vectors that are constants where it is called. `stairs` is of
/// enum gemm_stairs.
__attribute__((always_inline)) static inline void gemm_avx2_tile_of(
    const size_t rows, const size_t vectors, size_t cols, size_t depth, const float *a,
    size_t a_stride, const float *b, size_t b_stride, unsigned stairs, bool add, float *c,
    size_t c_stride) {
    __m256 sum[GEMM_AVX2_ACCUMULATORS];
    const bool whole = cols == vectors * 8;
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < vectors; v++) {
            sum[r * vectors + v] = _mm256_setzero_ps();
            if (add && whole) {
                sum[r * vectors + v] = _mm256_loadu_ps(c + r * c_stride + v * 8);
            } else if (add && cols > v * 8) {
                const __m256i mask = vec_avx2_mask(cols - v * 8 < 8 ? cols - v * 8 : 8);
                sum[r * vectors + v] = _mm256_maskload_ps(c + r * c_stride + v * 8, mask);
            }
        }
        // The lines that the row will be stored to arrive while the tile computes: three where it
        // begins amid one.
        _mm_prefetch((const char *)(c + r * c_stride), _MM_HINT_T0);
        if (vectors > 2) {
            _mm_prefetch((const char *)(c + r * c_stride + cols / 2), _MM_HINT_T0);
        }
        _mm_prefetch((const char *)(c + r * c_stride + cols - 1), _MM_HINT_T0);
    }
    if ((stairs & GEMM_STAIRS_BEFORE) != 0) {
        gemm_avx2_stairs_of(rows, vectors, false, a - (rows - 1), a_stride,
                            b - (rows - 1) * b_stride, b_stride, sum);
    }
    size_t p = 0;
    for (; p + 2 <= depth; p += 2) {
        gemm_avx2_step(rows, 0, rows, vectors, a, a_stride, b, sum);
        gemm_avx2_step(rows, 0, rows, vectors, a + 1, a_stride, b + b_stride, sum);
        a += 2;
        b += 2 * b_stride;
    }
    if (p < depth) {
        gemm_avx2_step(rows, 0, rows, vectors, a, a_stride, b, sum);
        a += 1;
        b += b_stride;
    }
    if ((stairs & GEMM_STAIRS_AFTER) != 0) {
        gemm_avx2_stairs_of(rows, vectors, true, a, a_stride, b, b_stride, sum);
    }
    if (whole) {
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
#pragma GCC unroll 4
            for (size_t v = 0; v < vectors; v++) {
                _mm256_storeu_ps(c + r * c_stride + v * 8, sum[r * vectors + v]);
            }
        }
        return;
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < vectors; v++) {
        if (cols <= v * 8) {
            break;
        }
        const size_t left = cols - v * 8;
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            if (left >= 8) {
                _mm256_storeu_ps(c + r * c_stride + v * 8, sum[r * vectors + v]);
            } else {
                vec_avx2_store_tail(c + r * c_stride + v * 8, sum[r * vectors + v], left);
            }
        }
    }
}

/// The tile for a number of rows that gemm_avx2_rows() gives.
__attribute__((always_inline)) static inline void gemm_avx2_tile_by(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    switch (rows) {
        case 1:
            gemm_avx2_tile_of(1, 4, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
        case 2:
            gemm_avx2_tile_of(2, 4, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
        case GEMM_AVX2_MR:
            gemm_avx2_tile_of(3, 4, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
        case 4:
            gemm_avx2_tile_of(4, 3, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
        case 6:
            gemm_avx2_tile_of(6, 2, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
        default:
            gemm_avx2_tile_of(12, 1, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                              c_stride);
            break;
    }
}

/// gemm_tile_fn of this level. Rows of B are 32-byte aligned. Not inlined: among the loops around
/// them, those in here would run out of registers for addresses.
__attribute__((noinline, unused)) static void gemm_avx2_tile(size_t rows, size_t cols, size_t depth,
                                                             const float *a, size_t a_stride,
                                                             const float *b, size_t b_stride,
                                                             bool add, float *c, size_t c_stride) {
    gemm_avx2_tile_by(rows, cols, depth, a, a_stride, b, b_stride, 0, add, c, c_stride);
}

/// gemm_stairs_fn of this level.
__attribute__((noinline, unused)) static void gemm_avx2_tile_stairs(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    gemm_avx2_tile_by(rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
}

/// gemm_next_fn of this level: at once, into L1, from where nothing of a panel is to come. Beside
/// the steps it took up to 4 % longer where a cache has the rows (Sapphire Rapids).
__attribute__((noinline, unused)) static void gemm_avx2_tile_next(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    if (next != NULL) {
        gemm_prefetch(WIDEN_F32, rows, depth, next, a_stride);
    }
    gemm_avx2_tile_by(rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c, c_stride);
}

/// The tile of one row, which adds to C: what a mask leaves to single rows is a few steps of depth,
/// and a call would cost as much as they do.
static inline void gemm_avx2_tile_row(size_t cols, size_t depth, const float *a, const float *b,
                                      size_t b_stride, float *c) {
    gemm_avx2_tile_of(1, GEMM_AVX2_VECTORS, cols, depth, a, 0, b, b_stride, 0, true, c, 0);
}

/// Loads 4 elements of row `row` into the low and of row `row + 4` into the high half; rows from
/// `rows` on are zeros.
static inline __m256 gemm_avx2_row_pair(const float *bt, size_t bt_stride, size_t row, size_t rows,
                                        __m128i mask) {
    __m128 low = _mm_setzero_ps();
    __m128 high = _mm_setzero_ps();
    if (row < rows) {
        low = _mm_maskload_ps(bt + row * bt_stride, mask);
    }
    if (row + 4 < rows) {
        high = _mm_maskload_ps(bt + (row + 4) * bt_stride, mask);
    }
    return _mm256_set_m128(high, low);
}

/// Transposes within each half: pair[i] holds 4 elements of row i (low) and i + 4 (high); column[j]
/// gets element j of the 8 rows.
static inline void gemm_avx2_transpose(const __m256 pair[4], __m256 column[4]) {
    const __m256 t0 = _mm256_unpacklo_ps(pair[0], pair[1]);
    const __m256 t1 = _mm256_unpackhi_ps(pair[0], pair[1]);
    const __m256 t2 = _mm256_unpacklo_ps(pair[2], pair[3]);
    const __m256 t3 = _mm256_unpackhi_ps(pair[2], pair[3]);
    column[0] = _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(1, 0, 1, 0));
    column[1] = _mm256_shuffle_ps(t0, t2, _MM_SHUFFLE(3, 2, 3, 2));
    column[2] = _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(1, 0, 1, 0));
    column[3] = _mm256_shuffle_ps(t1, t3, _MM_SHUFFLE(3, 2, 3, 2));
}

/// Packs B = alpha * transpose(bt), bt [cols, depth] row-major at any alignment: what S = Q * K^T
/// asks for. `packed` is 64-byte aligned and gemm_packed_count() long.
static inline void gemm_avx2_pack_transposed(const float *bt, size_t bt_stride, size_t cols,
                                             size_t depth, float alpha, float *packed) {
    const __m256 factor = _mm256_set1_ps(alpha);
    // Eight columns at a time; a panel is four such slices.
    for (size_t first = 0; first < gemm_packed_count(1, cols, GEMM_AVX2_NR); first += 8) {
        const size_t left = first < cols ? cols - first : 0;
        const float *from = bt + (left > 0 ? first : 0) * bt_stride;
        float *to = packed + first / GEMM_AVX2_NR * GEMM_AVX2_NR * depth + first % GEMM_AVX2_NR;
        __m256 pair[4];
        __m256 column[4];
        size_t p = 0;
        if (left >= 8) {
            for (; p + 4 <= depth; p += 4) {
                if (left >= 16) {
                    // The next eight rows, two of their lines at each of the four steps of a line.
                    const float *next = from + (8 + p / 2 % 8) * bt_stride + p;
                    _mm_prefetch((const char *)next, _MM_HINT_T0);
                    _mm_prefetch((const char *)(next + bt_stride), _MM_HINT_T0);
                }
                for (size_t i = 0; i < 4; i++) {
                    pair[i] = _mm256_loadu2_m128(from + (i + 4) * bt_stride + p,
                                                 from + i * bt_stride + p);
                }
                gemm_avx2_transpose(pair, column);
                for (size_t j = 0; j < 4; j++) {
                    _mm256_store_ps(to + (p + j) * GEMM_AVX2_NR, _mm256_mul_ps(column[j], factor));
                }
            }
        }
        for (; p < depth; p += 4) {
            const size_t width = depth - p < 4 ? depth - p : 4;
            const __m128i mask = _mm256_castsi256_si128(vec_avx2_mask(width));
            for (size_t i = 0; i < 4; i++) {
                pair[i] = gemm_avx2_row_pair(from + p, bt_stride, i, left, mask);
            }
            gemm_avx2_transpose(pair, column);
            for (size_t j = 0; j < width; j++) {
                _mm256_store_ps(to + (p + j) * GEMM_AVX2_NR, _mm256_mul_ps(column[j], factor));
            }
        }
    }
}

/// Packs B [depth, cols] at any alignment. `packed` is 64-byte aligned and gemm_packed_count()
/// long.
static inline void gemm_avx2_pack(const float *b, size_t b_stride, size_t cols, size_t depth,
                                  float *packed) {
    // Row by row, as B lies in memory; the panels are written side by side.
    for (size_t p = 0; p < depth; p++) {
        const float *from = b + p * b_stride;
        float *to = packed + p * GEMM_AVX2_NR;
        size_t col = 0;
        for (; col + GEMM_AVX2_NR <= cols; col += GEMM_AVX2_NR) {
#pragma GCC unroll 4
            for (size_t v = 0; v < GEMM_AVX2_VECTORS; v++) {
                _mm256_store_ps(to + col * depth + v * 8, _mm256_loadu_ps(from + col + v * 8));
            }
        }
        for (size_t v = 0; col + v * 8 < gemm_packed_count(1, cols, GEMM_AVX2_NR); v++) {
            const size_t left = col + v * 8 < cols ? cols - col - v * 8 : 0;
            __m256 x = _mm256_setzero_ps();
            if (left > 0) {
                x = _mm256_maskload_ps(from + col + v * 8, vec_avx2_mask(left < 8 ? left : 8));
            }
            _mm256_store_ps(to + col * depth + v * 8, x);
        }
    }
}

#endif
