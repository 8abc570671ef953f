/// The register tile and the packer of the GEMM-shaped ops at the AVX2 level; gemm.h has the layout
/// and the contract.
///
/// Tile: 3 x 32, register blocking after Goto and van de Geijn for 16 registers: 12 accumulators
/// (two multiply-adds a cycle of latency 4 need 8), 3 broadcasts of A, 1 of B; 7 loads feed 12
/// multiply-adds, one fewer than at 6 x 16, and a row of the tile is two whole cache lines of C.
#ifndef MHA_GEMM_AVX2_H
#define MHA_GEMM_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "gemm.h"
#include "vec_avx2.h"

enum { GEMM_AVX2_MR = 3, GEMM_AVX2_NR = 32, GEMM_AVX2_VECTORS = GEMM_AVX2_NR / 8 };

/// One step of depth: sum[r][v] += a[r] * panel[v], for a number of rows that is a constant where
/// it is called.
__attribute__((always_inline)) static inline void gemm_avx2_step(
    const size_t rows, const float *a, size_t a_stride, const float *panel,
    __m256 sum[GEMM_AVX2_MR][GEMM_AVX2_VECTORS]) {
    __m256 x[GEMM_AVX2_MR];
#pragma GCC unroll 3
    for (size_t r = 0; r < GEMM_AVX2_MR && r < rows; r++) {
        x[r] = _mm256_broadcast_ss(a + r * a_stride);
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < GEMM_AVX2_VECTORS; v++) {
        const __m256 b = _mm256_load_ps(panel + v * 8);
#pragma GCC unroll 3
        for (size_t r = 0; r < GEMM_AVX2_MR && r < rows; r++) {
            sum[r][v] = _mm256_fmadd_ps(x[r], b, sum[r][v]);
        }
    }
}

/// The tile for a number of rows that is a constant where it is called.
__attribute__((always_inline)) static inline void gemm_avx2_tile_of(const size_t rows, size_t cols,
                                                                    size_t depth, const float *a,
                                                                    size_t a_stride,
                                                                    const float *panel, float *c,
                                                                    size_t c_stride) {
    __m256 sum[GEMM_AVX2_MR][GEMM_AVX2_VECTORS];
#pragma GCC unroll 3
    for (size_t r = 0; r < GEMM_AVX2_MR && r < rows; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < GEMM_AVX2_VECTORS; v++) {
            sum[r][v] = _mm256_setzero_ps();
        }
        // The two lines that the row will be stored to arrive while the tile computes.
        _mm_prefetch((const char *)(c + r * c_stride), _MM_HINT_T0);
        _mm_prefetch((const char *)(c + r * c_stride + cols - 1), _MM_HINT_T0);
    }
    size_t p = 0;
    for (; p + 2 <= depth; p += 2) {
        gemm_avx2_step(rows, a, a_stride, panel, sum);
        gemm_avx2_step(rows, a + 1, a_stride, panel + GEMM_AVX2_NR, sum);
        a += 2;
        panel += (size_t)2 * GEMM_AVX2_NR;
    }
    if (p < depth) {
        gemm_avx2_step(rows, a, a_stride, panel, sum);
    }
    if (cols == GEMM_AVX2_NR) {
#pragma GCC unroll 3
        for (size_t r = 0; r < GEMM_AVX2_MR && r < rows; r++) {
#pragma GCC unroll 4
            for (size_t v = 0; v < GEMM_AVX2_VECTORS; v++) {
                _mm256_storeu_ps(c + r * c_stride + v * 8, sum[r][v]);
            }
        }
        return;
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < GEMM_AVX2_VECTORS; v++) {
        if (cols <= v * 8) {
            break;
        }
        const __m256i mask = vec_avx2_mask(cols - v * 8 < 8 ? cols - v * 8 : 8);
#pragma GCC unroll 3
        for (size_t r = 0; r < GEMM_AVX2_MR && r < rows; r++) {
            _mm256_maskstore_ps(c + r * c_stride + v * 8, mask, sum[r][v]);
        }
    }
}

/// gemm_tile_fn of this level. The panel is 32-byte aligned.
static inline void gemm_avx2_tile(size_t rows, size_t cols, size_t depth, const float *a,
                                  size_t a_stride, const float *panel, float *c, size_t c_stride) {
    switch (rows) {
        case 1:
            gemm_avx2_tile_of(1, cols, depth, a, a_stride, panel, c, c_stride);
            break;
        case 2:
            gemm_avx2_tile_of(2, cols, depth, a, a_stride, panel, c, c_stride);
            break;
        default:
            gemm_avx2_tile_of(GEMM_AVX2_MR, cols, depth, a, a_stride, panel, c, c_stride);
            break;
    }
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

#endif
