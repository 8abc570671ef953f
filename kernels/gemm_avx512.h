/// The register tile and the packer of the GEMM-shaped ops at the AVX-512 level; gemm.h has the
/// layout and the contract.
///
/// Tile: 6 x 64, register blocking after Goto and van de Geijn for 32 registers: 24 accumulators, 4
/// vectors of B, which are held, and the broadcasts of A; 10 loads feed 24 multiply-adds, where 12
/// x 32 needs 14. Where fewer columns are left, the tile is taller: 8 x 48, 12 x 32, 24 x 16.
#ifndef MHA_GEMM_AVX512_H
#define MHA_GEMM_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Cores of this level have 48 KiB of L1 (Zen 4: 32) before 1 or 2 MiB of L2 that deliver the 256
// bytes of a panel that a tile takes in 12 cycles. A panel that does not stay in L1 costs nothing,
// then; loading and storing C more often does, and rows of A cut into short runs: on Emerald Rapids
// half as much took 1 to 3 % longer, a quarter up to 5 %, but for 32 heads of 64, and twice as much
// up to 7 % at 4096 columns. A tile's rows of A, each of whose floats is read by itself, are to
// stay in L1 for all panels. Short panels go two and three at a time, so that what a row of C gets
// is longer.
// Hardware brings panels into L1. Fetched by the tile, 12 steps ahead, 128 rows of projections took
// 0 to 3 % less on a core of Emerald Rapids' kind, other shapes as long, and up to 3 % more on Zen
// 4; into L2, 32 steps ahead, up to 7 % more on the former and as long on the latter.
#define GEMM_PANEL_BYTES ((size_t)131072)
#define GEMM_PANEL_GROUP_BYTES 32768u
#define GEMM_ROW_BLOCK_BYTES 16384u
// Where depth is cut, tiles take the same panel one after the other, and their rows from L2: so
// some of a panel is still in L1, and sums stay in L2 from block to block. On Zen 5, 128 and 512
// rows took 2 to 5 % less than with a tile's rows in L1 for all panels; 132 rows 0 to 2 % more
// than 66, 24 rows 1 to 4 %, panels of half and one and a half times the depth 0 to 2 %.
#define GEMM_DEEP_ROWS 66
// Q, K and V of the next head, up to 768 KiB, beside those of this one, packed, in 2 MiB of L2.
#define GEMM_AHEAD_BYTES ((size_t)262144)
// Every tile reads whole vectors and none beside them.
#define GEMM_DIRECT_COLS 16
#include "gemm.h"
#include "vec_avx512.h"
#include "widen_avx512.h"

enum {
    GEMM_AVX512_MR = 6,
    GEMM_AVX512_NR = 64,
    GEMM_AVX512_VECTORS = GEMM_AVX512_NR / 16,
    GEMM_AVX512_ACCUMULATORS = GEMM_AVX512_MR * GEMM_AVX512_VECTORS,
    GEMM_AVX512_TALLEST = GEMM_AVX512_ACCUMULATORS,  ///< Rows: whole tiles of every height.
    /// Steps from which on a tile fetches rows to come beside them, each beside its part: where
    /// these are short, causal masks of 128 keys took up to 9 % longer (Sapphire Rapids).
    GEMM_AVX512_DEEP = 128,
    /// What it fetches at once of each row else, in floats: two lines. Hundreds of lines delay the
    /// panel: whole rows took 3 to 9 % longer, at head_dim 40 and 64 most (Emerald Rapids).
    GEMM_AVX512_BEGIN = 32,
};

/// What a step of a tile multiplies: floats, or pairs of bf16 (gemm_avx512bf16.h), with a last row
/// of the panel that holds factors of the sums.
enum gemm_avx512_step { GEMM_AVX512_FLOATS, GEMM_AVX512_PAIRS, GEMM_AVX512_SCALED_PAIRS };

/// Gets sum + x * b, or sum + x_0 * b_0 + x_1 * b_1 of pairs.
__attribute__((always_inline)) static inline __m512 gemm_avx512_multiply(
    const enum gemm_avx512_step step, __m512 x, __m512 b, __m512 sum) {
#ifdef GEMM_AVX512_HAS_PAIRS
    if (step != GEMM_AVX512_FLOATS) {
        return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)b);
    }
#endif
    (void)step;
    return _mm512_fmadd_ps(x, b, sum);
}

/// Keeps a multiply-add where it stands among the loads of a step. clang 19 gathers the broadcasts
/// of whole steps before it multiplies, more than registers hold: tiles took twice the time. gcc 12
/// keeps the order by itself, and spills where it is told to.
#if defined(__clang__) && defined(__AVX512F__)
#define GEMM_AVX512_IN_ORDER(sum) __asm__ volatile("" : "+v"(sum) : : "memory")
#else
#define GEMM_AVX512_IN_ORDER(sum) ((void)(sum))
#endif

/// Gets the vectors of a tile of so many rows: whole panels, or as many as fill the accumulators.
static inline size_t gemm_avx512_vectors(size_t rows) {
    return rows <= GEMM_AVX512_MR ? GEMM_AVX512_VECTORS : GEMM_AVX512_ACCUMULATORS / rows;
}

/// gemm_rows_fn of this level. Tiles that leave accumulators free have fewer rows than MR.
static inline size_t gemm_avx512_rows(size_t left, size_t cols) {
    const size_t height = GEMM_AVX512_ACCUMULATORS / ((cols + 15) / 16);
    if (height > GEMM_AVX512_MR) {
        return left >= height ? height : gemm_tile_rows(left, GEMM_AVX512_MR - 1);
    }
    return gemm_tile_rows(left, GEMM_AVX512_MR);
}

/// Unrolls the loop that follows. Not for clang's address sanitizer, which then takes a minute for
/// a tile and its checks.
#if defined(MHA_SANITIZE_address) && defined(__clang__)
#define GEMM_AVX512_UNROLL(times)
#else
#define GEMM_AVX512_PRAGMA(text) _Pragma(#text)
#define GEMM_AVX512_UNROLL(times) GEMM_AVX512_PRAGMA(GCC unroll times)
#endif

/// Loads a row of B: of a tile that may be wider than what is left of it, under masks.
__attribute__((always_inline)) static inline void gemm_avx512_load(const size_t vectors,
                                                                   const bool masked,
                                                                   const __mmask16 mask[4],
                                                                   const float *row, __m512 b[4]) {
    GEMM_AVX512_UNROLL(4)
    for (size_t v = 0; v < vectors; v++) {
        b[v] = masked ? _mm512_maskz_loadu_ps(mask[v], row + v * 16) : _mm512_load_ps(row + v * 16);
    }
}

/// One step of depth: sum[r * vectors + v] += a[r] * row[v] for the rows [first, last) out of
/// `rows`, all of which are constants where it is called.
__attribute__((always_inline)) static inline void gemm_avx512_step_of(
    const enum gemm_avx512_step step, const size_t rows, const size_t first, const size_t last,
    const __mmask16 mask[4], const float *a, size_t a_stride, const float *row,
    __m512 sum[GEMM_AVX512_ACCUMULATORS]) {
    const size_t vectors = gemm_avx512_vectors(rows);
    __m512 x[4];
    gemm_avx512_load(vectors, rows < GEMM_AVX512_MR, mask, row, x);
    GEMM_AVX512_UNROLL(24)
    for (size_t r = 0; r < rows; r++) {
        if (r < first || r >= last) {
            continue;
        }
        const __m512 y = _mm512_set1_ps(a[r * a_stride]);
        GEMM_AVX512_UNROLL(4)
        for (size_t v = 0; v < vectors; v++) {
            sum[r * vectors + v] = gemm_avx512_multiply(step, y, x[v], sum[r * vectors + v]);
            GEMM_AVX512_IN_ORDER(sum[r * vectors + v]);
        }
    }
}

/// The steps of enum gemm_stairs before the tile, or those after it, from `a` and `b` on.
__attribute__((always_inline)) static inline void gemm_avx512_stairs_of(
    const enum gemm_avx512_step step, const size_t rows, const bool after, const __mmask16 mask[4],
    const float *a, size_t a_stride, const float *b, size_t b_stride,
    __m512 sum[GEMM_AVX512_ACCUMULATORS]) {
    GEMM_AVX512_UNROLL(24)
    for (size_t p = 0; p + 1 < rows; p++) {
        gemm_avx512_step_of(step, rows, after ? p + 1 : 0, after ? rows : p + 1, mask, a + p,
                            a_stride, b + p * b_stride, sum);
    }
}

/// The tile for a step and a number of rows that are constants where it is called; so are `stream`,
/// whether whole lines of C pass the caches, and `fetches`, whether rows are fetched from `next`
/// on. `stairs` is of enum gemm_stairs.
__attribute__((always_inline)) static inline void gemm_avx512_tile_of(
    const enum gemm_avx512_step step, const bool stream, const size_t rows, size_t cols,
    size_t depth, const float *a, size_t a_stride, const float *b, size_t b_stride, unsigned stairs,
    bool add, float *c, size_t c_stride, const bool fetches, const float *next) {
    const size_t vectors = gemm_avx512_vectors(rows);
    const bool lines = stream && cols == vectors * 16 && gemm_on_lines(c, c_stride);
    __mmask16 mask[4];
    __m512 sum[GEMM_AVX512_ACCUMULATORS];
    __m512 x[4];
    // Most tiles are whole: they go without what four masks take of a step.
    GEMM_AVX512_UNROLL(4)
    for (size_t v = 0; v < vectors; v++) {
        mask[v] = 0xffff;
    }
    if (cols < vectors * 16) {
        GEMM_AVX512_UNROLL(4)
        for (size_t v = 0; v < vectors; v++) {
            const size_t left = cols > v * 16 ? cols - v * 16 : 0;
            mask[v] = vec_avx512_mask(left < 16 ? left : 16);
        }
    }
    GEMM_AVX512_UNROLL(24)
    for (size_t r = 0; r < rows; r++) {
        GEMM_AVX512_UNROLL(4)
        for (size_t v = 0; v < vectors; v++) {
            sum[r * vectors + v] = _mm512_setzero_ps();
            if (add && cols > v * 16) {
                sum[r * vectors + v] = _mm512_maskz_loadu_ps(mask[v], c + r * c_stride + v * 16);
            }
        }
    }
    if ((stairs & GEMM_STAIRS_BEFORE) != 0) {
        gemm_avx512_stairs_of(step, rows, false, mask, a - (rows - 1), a_stride,
                              b - (rows - 1) * b_stride, b_stride, sum);
    }
    const size_t products = step == GEMM_AVX512_SCALED_PAIRS ? depth - 1 : depth;
    // A row of those to come beside a part of the steps, in order, a little of it each: all at
    // once, they would take the places of what the panel brings. Fewer rows are a block's end.
    const size_t parts = fetches && rows >= GEMM_AVX512_MR ? rows : 1;
    for (size_t part = 0, p = 0; part < parts; part++) {
        const float *ahead = next;
        GEMM_AVX512_UNROLL(4)
        for (const size_t stop = (part + 1) * products / parts; p < stop; p++) {
            gemm_avx512_step_of(step, rows, 0, rows, mask, a + p, a_stride, b + p * b_stride, sum);
            if (parts > 1) {
                _mm_prefetch((const char *)ahead, _MM_HINT_T1);
                if (parts > 16) {
                    // More than a line.
                    _mm_prefetch((const char *)(ahead + parts - 16), _MM_HINT_T1);
                }
                ahead += parts;
            }
        }
        // NULL, where nothing is fetched, takes no offset, not even 0.
        if (parts > 1) {
            next += a_stride;
        }
    }
    if ((stairs & GEMM_STAIRS_AFTER) != 0) {
        gemm_avx512_stairs_of(step, rows, true, mask, a + depth, a_stride, b + depth * b_stride,
                              b_stride, sum);
    }
    if (step == GEMM_AVX512_SCALED_PAIRS) {
        gemm_avx512_load(vectors, rows < GEMM_AVX512_MR, mask, b + products * b_stride, x);
        GEMM_AVX512_UNROLL(24)
        for (size_t r = 0; r < rows; r++) {
            GEMM_AVX512_UNROLL(4)
            for (size_t v = 0; v < vectors; v++) {
                sum[r * vectors + v] = _mm512_mul_ps(sum[r * vectors + v], x[v]);
            }
        }
    }
    GEMM_AVX512_UNROLL(24)
    for (size_t r = 0; r < rows; r++) {
        GEMM_AVX512_UNROLL(4)
        for (size_t v = 0; v < vectors; v++) {
            if (lines) {
                _mm512_stream_ps(c + r * c_stride + v * 16, sum[r * vectors + v]);
            } else if (cols == vectors * 16) {
                _mm512_storeu_ps(c + r * c_stride + v * 16, sum[r * vectors + v]);
            } else if (cols > v * 16) {
                _mm512_mask_storeu_ps(c + r * c_stride + v * 16, mask[v], sum[r * vectors + v]);
            }
        }
    }
}

/// The tile for a step, a `stream` and a `fetches` that are constants where it is called.
__attribute__((always_inline)) static inline void gemm_avx512_tile_by(
    const enum gemm_avx512_step step, const bool stream, size_t rows, size_t cols, size_t depth,
    const float *a, size_t a_stride, const float *b, size_t b_stride, unsigned stairs, bool add,
    float *c, size_t c_stride, const bool fetches, const float *next) {
#if defined(MHA_SANITIZE_address) && defined(__clang__)
    // A dozen tiles with a check at every access take clang minutes: there one does for all. gcc's
    // sanitized build checks each.
    gemm_avx512_tile_of(step, stream, rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                        c_stride, fetches, next);
#else
    switch (rows) {
        case 1:
            gemm_avx512_tile_of(step, stream, 1, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 2:
            gemm_avx512_tile_of(step, stream, 2, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 3:
            gemm_avx512_tile_of(step, stream, 3, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 4:
            gemm_avx512_tile_of(step, stream, 4, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 5:
            gemm_avx512_tile_of(step, stream, 5, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case GEMM_AVX512_MR:
            gemm_avx512_tile_of(step, stream, 6, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 8:
            gemm_avx512_tile_of(step, stream, 8, cols, depth, a, a_stride, b, b_stride, stairs, add,
                                c, c_stride, fetches, next);
            break;
        case 12:
            gemm_avx512_tile_of(step, stream, 12, cols, depth, a, a_stride, b, b_stride, stairs,
                                add, c, c_stride, fetches, next);
            break;
        default:
            gemm_avx512_tile_of(step, stream, GEMM_AVX512_ACCUMULATORS, cols, depth, a, a_stride, b,
                                b_stride, stairs, add, c, c_stride, fetches, next);
            break;
    }
#endif
}

/// As gemm_avx512_tile_by(), and fetches the rows at `next` if any: beside the steps where these
/// are enough for it, else where the rows begin.
__attribute__((always_inline)) static inline void gemm_avx512_tile_next_by(
    const enum gemm_avx512_step step, const bool stream, size_t rows, size_t cols, size_t depth,
    const float *a, size_t a_stride, const float *b, size_t b_stride, unsigned stairs, bool add,
    float *c, size_t c_stride, const float *next) {
    if (next != NULL && depth >= GEMM_AVX512_DEEP) {
        gemm_avx512_tile_by(step, stream, rows, cols, depth, a, a_stride, b, b_stride, stairs, add,
                            c, c_stride, true, next);
        return;
    }
    if (next != NULL) {
        gemm_prefetch(WIDEN_F32, rows, depth < GEMM_AVX512_BEGIN ? depth : GEMM_AVX512_BEGIN, next,
                      a_stride);
    }
    gemm_avx512_tile_by(step, stream, rows, cols, depth, a, a_stride, b, b_stride, stairs, add, c,
                        c_stride, false, NULL);
}

/// gemm_tile_fn of this level. Rows of B are 64-byte aligned. Not inlined: among the loops around
/// them, those in here would run out of registers for addresses.
__attribute__((noinline, unused)) static void gemm_avx512_tile(size_t rows, size_t cols,
                                                               size_t depth, const float *a,
                                                               size_t a_stride, const float *b,
                                                               size_t b_stride, bool add, float *c,
                                                               size_t c_stride) {
    gemm_avx512_tile_by(GEMM_AVX512_FLOATS, false, rows, cols, depth, a, a_stride, b, b_stride, 0,
                        add, c, c_stride, false, NULL);
}

/// gemm_stairs_fn of this level.
__attribute__((noinline, unused)) static void gemm_avx512_tile_stairs(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride) {
    gemm_avx512_tile_by(GEMM_AVX512_FLOATS, false, rows, cols, depth, a, a_stride, b, b_stride,
                        stairs, add, c, c_stride, false, NULL);
}

/// gemm_next_fn of this level: into L2, where there is room while a panel passes L1.
__attribute__((noinline, unused)) static void gemm_avx512_tile_next(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    gemm_avx512_tile_next_by(GEMM_AVX512_FLOATS, false, rows, cols, depth, a, a_stride, b, b_stride,
                             stairs, add, c, c_stride, next);
}

/// As gemm_avx512_tile(), but whole rows of C that are lines of the cache pass it. A store fence
/// must follow before anyone else may read C.
__attribute__((noinline, unused)) static void gemm_avx512_tile_stream(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, bool add, float *c, size_t c_stride) {
    gemm_avx512_tile_by(GEMM_AVX512_FLOATS, true, rows, cols, depth, a, a_stride, b, b_stride, 0,
                        add, c, c_stride, false, NULL);
}

/// As gemm_avx512_tile_next(), but with lines past the cache as gemm_avx512_tile_stream().
__attribute__((noinline, unused)) static void gemm_avx512_tile_next_stream(
    size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride, const float *b,
    size_t b_stride, unsigned stairs, bool add, float *c, size_t c_stride, const float *next) {
    gemm_avx512_tile_next_by(GEMM_AVX512_FLOATS, true, rows, cols, depth, a, a_stride, b, b_stride,
                             stairs, add, c, c_stride, next);
}

/// The tile of one row, which adds to C: what a mask leaves to single rows is a few steps of depth,
/// and a call would cost as much as they do.
static inline void gemm_avx512_tile_row(size_t cols, size_t depth, const float *a, const float *b,
                                        size_t b_stride, float *c) {
    gemm_avx512_tile_by(GEMM_AVX512_FLOATS, false, 1, cols, depth, a, 0, b, b_stride, 0, true, c, 0,
                        false, NULL);
}

/// Loads the elements of `mask` of rows row, row + 4, row + 8, row + 12 into the four quarters;
/// rows from `rows` on are zeros.
static inline __m512 gemm_avx512_row_quad(const float *bt, size_t bt_stride, size_t row,
                                          size_t rows, __mmask8 mask) {
    __m512 quad = _mm512_setzero_ps();
    if (row < rows) {
        quad = _mm512_zextps128_ps512(_mm_maskz_loadu_ps(mask, bt + row * bt_stride));
    }
    if (row + 4 < rows) {
        quad = _mm512_mask_broadcast_f32x4(quad, 0x00f0,
                                           _mm_maskz_loadu_ps(mask, bt + (row + 4) * bt_stride));
    }
    if (row + 8 < rows) {
        quad = _mm512_mask_broadcast_f32x4(quad, 0x0f00,
                                           _mm_maskz_loadu_ps(mask, bt + (row + 8) * bt_stride));
    }
    if (row + 12 < rows) {
        quad = _mm512_mask_broadcast_f32x4(quad, 0xf000,
                                           _mm_maskz_loadu_ps(mask, bt + (row + 12) * bt_stride));
    }
    return quad;
}

/// Transposes within each quarter: quad[i] holds 4 elements of rows i, i + 4, i + 8, i + 12;
/// column[j] gets element j of the 16 rows.
static inline void gemm_avx512_transpose(const __m512 quad[4], __m512 column[4]) {
    const __m512 t0 = _mm512_unpacklo_ps(quad[0], quad[1]);
    const __m512 t1 = _mm512_unpackhi_ps(quad[0], quad[1]);
    const __m512 t2 = _mm512_unpacklo_ps(quad[2], quad[3]);
    const __m512 t3 = _mm512_unpackhi_ps(quad[2], quad[3]);
    column[0] = _mm512_shuffle_ps(t0, t2, _MM_SHUFFLE(1, 0, 1, 0));
    column[1] = _mm512_shuffle_ps(t0, t2, _MM_SHUFFLE(3, 2, 3, 2));
    column[2] = _mm512_shuffle_ps(t1, t3, _MM_SHUFFLE(1, 0, 1, 0));
    column[3] = _mm512_shuffle_ps(t1, t3, _MM_SHUFFLE(3, 2, 3, 2));
}

/// Packs B = alpha * transpose(bt), bt [cols, depth] row-major at any alignment, or the bits of
/// transpose(bt) as they are unless `scaled`, a constant where it is called.
__attribute__((always_inline)) static inline void gemm_avx512_pack_transposed_by(
    const bool scaled, const float *bt, size_t bt_stride, size_t cols, size_t depth, float alpha,
    float *packed) {
    const __m512 factor = _mm512_set1_ps(alpha);
    // A panel is four slices of 16 columns.
    for (size_t first = 0; first < gemm_packed_count(1, cols, GEMM_AVX512_NR); first += 16) {
        const size_t left = first < cols ? cols - first : 0;
        const float *from = bt + (left > 0 ? first : 0) * bt_stride;
        float *to =
            packed + first / GEMM_AVX512_NR * GEMM_AVX512_NR * depth + first % GEMM_AVX512_NR;
        __m512 quad[4];
        __m512 column[4];
        size_t p = 0;
        if (left >= 16) {
            for (; p + 4 <= depth; p += 4) {
                // As many lines of the rows to come, as they lie in memory: those of 16 rows at a
                // time are no order that a hardware prefetcher would follow.
                fetch_lines(
                    FETCH_INTO_L1, 4,
                    (const char *)((uintptr_t)from + (16 * bt_stride + 16 * p) * sizeof(*from)));
                // Broadcasts from memory under a mask leave the shuffle unit to the transposition.
                for (size_t i = 0; i < 4; i++) {
                    const float *row = from + i * bt_stride + p;
                    __m512 v = _mm512_zextps128_ps512(_mm_loadu_ps(row));
                    v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(row + 4 * bt_stride));
                    v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(row + 8 * bt_stride));
                    v = _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(row + 12 * bt_stride));
                    quad[i] = v;
                }
                gemm_avx512_transpose(quad, column);
                for (size_t j = 0; j < 4; j++) {
                    _mm512_store_ps(to + (p + j) * GEMM_AVX512_NR,
                                    scaled ? _mm512_mul_ps(column[j], factor) : column[j]);
                }
            }
        }
        for (; p < depth; p += 4) {
            const size_t width = depth - p < 4 ? depth - p : 4;
            const __mmask8 mask = (__mmask8)vec_avx512_mask(width);
            for (size_t i = 0; i < 4; i++) {
                quad[i] = gemm_avx512_row_quad(from + p, bt_stride, i, left, mask);
            }
            gemm_avx512_transpose(quad, column);
            for (size_t j = 0; j < width; j++) {
                _mm512_store_ps(to + (p + j) * GEMM_AVX512_NR,
                                scaled ? _mm512_mul_ps(column[j], factor) : column[j]);
            }
        }
    }
}

/// Packs B = alpha * transpose(bt): what S = Q * K^T asks for. `packed` is 64-byte aligned and
/// gemm_packed_count() long.
static inline void gemm_avx512_pack_transposed(const float *bt, size_t bt_stride, size_t cols,
                                               size_t depth, float alpha, float *packed) {
    gemm_avx512_pack_transposed_by(true, bt, bt_stride, cols, depth, alpha, packed);
}

/// Packs B [depth, cols] at any alignment. `packed` is 64-byte aligned and gemm_packed_count()
/// long.
static inline void gemm_avx512_pack(const float *b, size_t b_stride, size_t cols, size_t depth,
                                    float *packed) {
    // Row by row, as B lies in memory; the panels are written side by side.
    for (size_t p = 0; p < depth; p++) {
        const float *from = b + p * b_stride;
        float *to = packed + p * GEMM_AVX512_NR;
        size_t col = 0;
        for (; col + GEMM_AVX512_NR <= cols; col += GEMM_AVX512_NR) {
#pragma GCC unroll 4
            for (size_t v = 0; v < GEMM_AVX512_VECTORS; v++) {
                _mm512_store_ps(to + col * depth + v * 16, _mm512_loadu_ps(from + col + v * 16));
            }
        }
        for (size_t v = 0; col + v * 16 < gemm_packed_count(1, cols, GEMM_AVX512_NR); v++) {
            const size_t left = col + v * 16 < cols ? cols - col - v * 16 : 0;
            __m512 x = _mm512_setzero_ps();
            if (left > 0) {
                x = _mm512_maskz_loadu_ps(vec_avx512_mask(left < 16 ? left : 16),
                                          from + col + v * 16);
            }
            _mm512_store_ps(to + col * depth + v * 16, x);
        }
    }
}

#endif
