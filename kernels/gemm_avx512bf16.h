/// The register tile and the packers of bf16 at the AVX-512 level with BF16: gemm_avx512.h's, with
/// vdpbf16ps in place of the multiply-add. A float of A, of a panel and of depth becomes a pair of
/// bf16, two elements of depth side by side.
///
/// vdpbf16ps adds the two products to a float one after the other, each by a fused multiply-add
/// that rounds to nearest even and takes and leaves denormals as zeros, whatever MXCSR says (Intel
/// SDM, vol. 2C, VDPBF16PS): a chain as the f32 tile's, of twice as many links.
#ifndef MHA_GEMM_AVX512BF16_H
#define MHA_GEMM_AVX512BF16_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GEMM_AVX512_HAS_PAIRS
#include "gemm_avx512.h"

/// Gets the pairs of `count` elements; the last one of an odd number is paired with a zero.
static inline size_t gemm_avx512bf16_pairs(size_t count) {
    return (count + 1) / 2;
}

/// Copies `rows` rows of `count` bf16 to rows of whole pairs. `type` is WIDEN_BF16.
static inline void gemm_avx512bf16_pair_rows(enum widen_type type, size_t rows, size_t count,
                                             const void *from, size_t from_stride, float *to,
                                             size_t to_stride) {
    for (size_t r = 0; r < rows; r++) {
        char *row = (char *)(to + r * to_stride);
        memcpy(row, widen_at(type, from, r * from_stride), count * sizeof(uint16_t));
        if (count % 2 != 0) {
            memset(row + count * sizeof(uint16_t), 0, sizeof(uint16_t));
        }
    }
}

/// Packs one panel of transpose(bt), bt [cols, depth - 1] of pairs, and behind it, as the last of
/// `depth`, a row of alphas: scaling k itself would round it to bf16 once more.
static inline void gemm_avx512bf16_pack_transposed(const float *bt, size_t bt_stride, size_t cols,
                                                   size_t depth, float alpha, float *packed) {
    float *factors = packed + (depth - 1) * GEMM_AVX512_NR;
    gemm_avx512_pack_transposed_by(false, bt, bt_stride, cols, depth - 1, 1.0f, packed);
    for (size_t v = 0; v < GEMM_AVX512_VECTORS; v++) {
        _mm512_store_ps(factors + v * 16, _mm512_set1_ps(alpha));
    }
}

/// gemm_tile_fn over such a panel.
__attribute__((noinline, unused)) static void gemm_avx512bf16_scaled_tile(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, bool add, float *c, size_t c_stride) {
    gemm_avx512_tile_by(GEMM_AVX512_SCALED_PAIRS, false, rows, cols, depth, a, a_stride, b,
                        b_stride, 0, add, c, c_stride, false, NULL);
}

/// The same with whole lines of C past the caches, see gemm_avx512_tile_stream().
__attribute__((noinline, unused)) static void gemm_avx512bf16_scaled_tile_stream(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, bool add, float *c, size_t c_stride) {
    gemm_avx512_tile_by(GEMM_AVX512_SCALED_PAIRS, true, rows, cols, depth, a, a_stride, b, b_stride,
                        0, add, c, c_stride, false, NULL);
}

/// gemm_next_fn over pairs.
__attribute__((noinline, unused)) static void gemm_avx512bf16_tile_next(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    gemm_avx512_tile_next_by(GEMM_AVX512_PAIRS, false, rows, cols, depth, a, a_stride, b, b_stride,
                             stairs, add, c, c_stride, next);
}

/// The same with whole lines of C past the caches, see gemm_avx512_tile_stream().
__attribute__((noinline, unused)) static void gemm_avx512bf16_tile_next_stream(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    gemm_avx512_tile_next_by(GEMM_AVX512_PAIRS, true, rows, cols, depth, a, a_stride, b, b_stride,
                             stairs, add, c, c_stride, next);
}

/// The tile of one row, see gemm_avx512_tile_row().
static inline void gemm_avx512bf16_tile_row(size_t cols, size_t depth, const float *a,
                                            const float *b, size_t b_stride, float *c) {
    gemm_avx512_tile_by(GEMM_AVX512_PAIRS, false, 1, cols, depth, a, 0, b, b_stride, 0, true, c, 0,
                        false, NULL);
}

/// Gets 16 pairs (a_i, b_i) of the elements of two rows in `mask`; without `b` of a_i and zeros.
static inline __m512i gemm_avx512bf16_interleave(const void *a, const void *b, __mmask16 mask) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, a));
    if (b == NULL) {
        return low;
    }
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, b));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/// gemm_pack_fn for B [depth, cols] of bf16, whatever its pointer's type, and a stride in those:
/// packs pairs of rows, the last one of an odd number with zeros.
/// `packed` is 64-byte aligned and gemm_packed_count(pairs, cols) long.
static inline void gemm_avx512bf16_pack(const float *b, size_t b_stride, size_t cols, size_t depth,
                                        float *packed) {
    const size_t pairs = gemm_avx512bf16_pairs(depth);
    for (size_t p = 0; p < pairs; p++) {
        for (size_t col = 0; col < gemm_packed_count(1, cols, GEMM_AVX512_NR); col += 16) {
            const size_t left = col < cols ? cols - col : 0;
            const size_t at = 2 * p * b_stride + (left > 0 ? col : 0);
            const bool whole = 2 * p + 1 < depth;
            const __m512i both = gemm_avx512bf16_interleave(
                widen_at(WIDEN_BF16, b, at), whole ? widen_at(WIDEN_BF16, b, at + b_stride) : NULL,
                vec_avx512_mask(left < 16 ? left : 16));
            float *to = packed + col / GEMM_AVX512_NR * GEMM_AVX512_NR * pairs +
                        p * GEMM_AVX512_NR + col % GEMM_AVX512_NR;
            _mm512_store_ps(to, _mm512_castsi512_ps(both));
        }
    }
}

/// Adds one element of a pair at `p`, the first or the second, times the same one of each of `cols`
/// pairs of a panel's row to c.
static inline void gemm_avx512bf16_single(size_t cols, bool second, const float *p,
                                          const float *panel, float *c) {
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    const __m512i pair = _mm512_castps_si512(_mm512_set1_ps(*p));
    const __m512i x = second ? _mm512_and_si512(pair, upper) : _mm512_slli_epi32(pair, 16);
    for (size_t col = 0; col < cols; col += 16) {
        const __mmask16 mask = vec_avx512_mask(cols - col < 16 ? cols - col : 16);
        const __m512i pairs = _mm512_castps_si512(_mm512_load_ps(panel + col));
        const __m512i y = second ? _mm512_and_si512(pairs, upper) : _mm512_slli_epi32(pairs, 16);
        const __m512 sum = _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y),
                                           _mm512_maskz_loadu_ps(mask, c + col));
        _mm512_mask_storeu_ps(c + col, mask, sum);
    }
}

#endif
