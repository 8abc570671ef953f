/// sdpa over the packed GEMM and the vectors of one ISA: packed_bytes(), workspace_bytes(), pack()
/// and run() of the hand-written variants. Includers define SDPA_TYPE, the type of Q's, K's and V's
/// elements, and include one of sdpa_<isa>.h. These define SDPA_TILE, SDPA_TILE_STAIRS,
/// SDPA_TILE_ROW, SDPA_ROWS, SDPA_MR, SDPA_NR, SDPA_PACK_TRANSPOSED, SDPA_PACK, SDPA_WIDEN and the
/// block, SDPA_QUERIES (a multiple of SDPA_MR) by SDPA_KEYS (a multiple of SDPA_NR); and beyond
/// lanes_<isa>.h
///
///   lanes_max(a, b)          the larger, b where a is NaN
///   lanes_keep(v, n, fill)   the first n lanes of v, all from LANES on; `fill` in the others
///   lanes_exp2(d)            2^d for d <= 0 or NaN, exactly 0 at -inf
///   lanes_reduce_max(v), lanes_reduce_add(v)
///
/// Where the first product is of something else than widened elements, includers define
/// SDPA_DEPTH(head_dim), the floats of a row of it, SDPA_PREPARE, which makes such rows of Q and K
/// in place of SDPA_WIDEN, SDPA_PACK_KEYS, which packs those of K, and SDPA_SCORE_TILE. For results
/// that pass the caches they define SDPA_STREAM(p, v), which stores a vector so, and SDPA_FENCE().
///
/// Algorithm: Dao et al. 2022 (arXiv:2205.14135), algorithm 1, with the sums divided once, at the
/// end. K of a kv head is packed once, transposed and multiplied by scale * log2(e), and V as it
/// is, both in panels of SDPA_NR columns; V only where gemm_direct() does not take it. Exponentials
/// are to base 2, whose reduction is exact. For a block of queries, blocks of keys pass one after
/// the other: a product writes their scores into the workspace; each row takes its maximum, and
/// where that exceeds the largest score so far scales down what it has summed (the online softmax
/// of Milakov and Gimelshein 2018, arXiv:1805.02867); the scores become exponentials in place; a
/// second product adds these times V to the row's sums, in the workspace too. Tiles of scores that
/// no row sees are left out, and every row's products with V begin and end exactly at its visible
/// keys: what it does not see is not read into its result, NaN or not.
///
/// Few queries, as in decoding, are bound by reading K and V: these are then read once and where
/// they are, the scores being dot products along head_dim.
///
/// bf16 and f16 are widened to floats on the way, everything behind that being the same: K and V
/// before they are packed, a block of Q before its products, and where K and V are read as they
/// are, in registers.
///
/// A row's result depends on nothing but the row: blocks of keys begin at multiples of their size,
/// an element of a tile is one chain of multiply-adds whatever the tile, and rows meet in no sum.
/// The bits are the same however the queries are cut into items.
///
/// Error: that which harness/ops/sdpa.c derives, at the ULP that the ISA's exp2 claims. Widening is
/// exact.
/// Tail: head_dim by zeros in the packed panels, and exact loads and stores of q, k, v and o.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "mha_kernel.h"
#define DOTS_TYPE SDPA_TYPE
#include "dots.inl"
#define AXPYS_TYPE SDPA_TYPE
#include "axpys.inl"
#include "sdpa/sdpa_bias.h"
#include "softmax/softmax_rows.h"

#ifndef SDPA_DEPTH
#define SDPA_DEPTH(head_dim) (head_dim)
#define SDPA_PREPARE SDPA_WIDEN
#define SDPA_PACK_KEYS SDPA_PACK_TRANSPOSED
#define SDPA_SCORE_TILE SDPA_TILE
#endif

#ifdef SDPA_STREAM
#define SDPA_STREAMS true
#else
#define SDPA_STREAMS false
#define SDPA_STREAM(p, v) lanes_store(p, v, LANES)
#define SDPA_FENCE() ((void)0)
#endif

/// Queries times heads of a group up to which K and V are read where they are: fewer than pay for
/// the packing.
enum { FEW_QUERIES = 8 };

/// Keys of a block then: their scores stay in L1. At the end of each block maxima and sums wait for
/// each other, and hardware follows K and V anew: 512 keys took 1 to 2 % more on Zen 5, 256 another
/// 1 to 2 %.
enum { FEW_KEYS = 1024 };

/// Bytes of K or of V of a piece, beside which the piece that follows is fetched into L1. With half
/// as many four queries took up to 10 % more, with twice as many 2 to 8 % more (Zen 5).
#define FEW_PIECE_BYTES ((size_t)8192)

/// Fewest and most keys of a piece, multiples of DOTS.
enum { FEW_PIECE_LEAST = 16, FEW_PIECE_MOST = 128 };

/// Bytes of K up to which several queries fetch nothing and all keys are one piece, since caches
/// are near: in pieces 64 keys of 64 took 8 % more on Zen 5. For one query that is FEW_NEAR_BYTES:
/// 16 and 32 KiB took 4 to 19 % more in pieces; fetched too, 24 to 64 KiB took up to 24 % less
/// where L2 does not hold all heads together, and up to 29 % more where it does.
#define FEW_SHARED_NEAR_BYTES (2 * FEW_PIECE_BYTES)

/// Rows whose scores are read twice, for their maxima and their exponentials, while in L1.
enum { WEIGHT_ROWS = 4 };

/// Floats between rows of scores beyond the keys of a block: room for a whole vector at a row's
/// end, and rows do not fall into the same sets of a cache.
enum { PAD = 16 };

/// Pieces of memory that are fetched along the way: packing would wait for them, which takes a
/// twentieth of the time at 512 keys.
enum { PIECES = 3 };

struct query {
    struct mha_span span;  ///< Visible keys.
    size_t head;           ///< In the group.
    size_t row;            ///< In the sequence.
    const float *q;
    float *o;
};

/// A block of queries and its pieces of the workspace.
struct block {
    const struct mha_sdpa_args *args;
    size_t count;
    struct query query[SDPA_QUERIES];  ///< Spans in ascending order, if packed.
    size_t q_stride;                   ///< Of consecutive queries; packed only.
    size_t width;                      ///< Row length of `sums`: head_dim in whole panels.
    size_t s_stride;
    float *s;        ///< [queries][s_stride] scores, then their exponentials.
    float *sums;     ///< [queries][width]
    float *largest;  ///< [queries] largest score so far.
    float *total;    ///< [queries][LANES] sums of the exponentials.
    float *room;     ///< [queries][widen_stride(row_depth())] for widened or prepared queries.
    float *t5;       ///< [heads][SDPA_T5_ENTRIES]
    struct gemm_ahead ahead[PIECES];  ///< K, V and Q of the group that follows.
};

static inline size_t sdpa_min(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t padded(size_t head_dim) {
    return gemm_packed_count(1, head_dim, SDPA_NR);
}

static bool packs(const struct mha_shape *shape) {
    return shape->seq_q * (shape->heads / shape->kv_heads) > FEW_QUERIES;
}

/// Gets the keys of a piece: as many as go together, a number of times.
static inline size_t few_piece(size_t head_dim) {
    const size_t keys = FEW_PIECE_BYTES / (head_dim * widen_bytes(SDPA_TYPE)) / DOTS * DOTS;
    return keys < FEW_PIECE_LEAST ? FEW_PIECE_LEAST : sdpa_min(keys, FEW_PIECE_MOST);
}

/// Gets the floats of a query as the first product takes it.
static inline size_t row_depth(bool packed, size_t head_dim) {
    return packed ? SDPA_DEPTH(head_dim) : head_dim;
}

/// Gets the floats of the room for `rows` rows of `depth` floats: none where nothing is widened.
static size_t widened(size_t rows, size_t depth) {
    return SDPA_TYPE == WIDEN_F32 ? 0 : rows * widen_stride(depth);
}

static size_t packed_bytes(const struct mha_shape *shape) {
    // Behind the panels is the room in which keys are widened.
    const size_t depth = SDPA_DEPTH(shape->head_dim);
    const size_t count = gemm_packed_count(depth, shape->seq_kv, SDPA_NR) +
                         gemm_packed_count(shape->seq_kv, shape->head_dim, SDPA_NR) +
                         widened(SDPA_NR, depth);
    return packs(shape) ? count * sizeof(float) : 0;
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    const size_t queries = packs(shape) ? SDPA_QUERIES : FEW_QUERIES;
    const size_t keys = (packs(shape) ? SDPA_KEYS : FEW_KEYS) + PAD;
    return (queries * (keys + padded(shape->head_dim) + 1 + LANES) +
            widened(queries, row_depth(packs(shape), shape->head_dim)) +
            shape->heads / shape->kv_heads * SDPA_T5_ENTRIES) *
           sizeof(float);
}

/// Tells whether tiles take V as it is.
static inline bool direct(const struct mha_sdpa_args *args) {
    return gemm_direct(SDPA_TYPE, args->v, args->v_stride, args->head_dim);
}

static void pack(const struct mha_sdpa_args *args, void *packed) {
    float *const k = packed;
    float *const v = k + gemm_packed_count(SDPA_DEPTH(args->head_dim), args->seq_kv, SDPA_NR);
    const float scale = args->scale * VEC_LOG2_E;
    if (SDPA_TYPE == WIDEN_F32) {
        SDPA_PACK_KEYS(args->k, args->k_stride, args->seq_kv, args->head_dim, scale, k);
        if (!direct(args)) {
            SDPA_PACK(args->v, args->v_stride, args->head_dim, args->seq_kv, v);
        }
        return;
    }
    gemm_pack_transposed_narrow(SDPA_PREPARE, SDPA_PACK_KEYS, SDPA_NR, SDPA_TYPE, args->k,
                                args->k_stride, args->seq_kv, args->head_dim,
                                SDPA_DEPTH(args->head_dim), scale, k,
                                v + gemm_packed_count(args->seq_kv, args->head_dim, SDPA_NR));
    // A panel of V is rows of SDPA_NR elements: no more than widened ones, and zeros at the end.
    for (size_t col = 0; col < args->head_dim; col += SDPA_NR) {
        float *const panel = v + col * args->seq_kv;
        const size_t width = sdpa_min(args->head_dim - col, SDPA_NR);
        if (width < SDPA_NR) {
            memset(panel, 0, args->seq_kv * SDPA_NR * sizeof(*panel));
        }
        SDPA_WIDEN(SDPA_TYPE, args->seq_kv, width, widen_at(SDPA_TYPE, args->v, col),
                   args->v_stride, panel, SDPA_NR);
    }
}

/// The part of a query's span that lies in a block of keys, counted from its first.
static inline struct mha_span span_within(struct mha_span span, size_t first, size_t keys) {
    const size_t begin = span.begin > first ? span.begin - first : 0;
    const size_t end = span.end > first ? span.end - first : 0;
    return (struct mha_span){sdpa_min(begin, keys), sdpa_min(end, keys)};
}

static inline void add_alibi(float *s, size_t n, float slope, float distance) {
    const lanes steep = lanes_set(slope), step = lanes_set(LANES);
    lanes at = lanes_add(lanes_set(distance), lanes_index());
    for (size_t i = 0; i < n; i += LANES) {
        lanes_store(s + i, lanes_fnma(steep, lanes_abs(at), lanes_load(s + i, LANES)), LANES);
        at = lanes_add(at, step);
    }
}

static inline void add_t5(float *s, size_t n, const float *table, ptrdiff_t distance) {
    for (size_t i = 0; i < n; i += LANES) {
        const lanes bias = lanes_load(sdpa_t5_at(table, distance + (ptrdiff_t)i), LANES);
        lanes_store(s + i, lanes_add(lanes_load(s + i, LANES), bias), LANES);
    }
}

/// Gets the largest of s[0 ... n), NaN left out; -inf when there is none.
static inline float largest_of(const float *s, size_t n) {
    const lanes lowest = lanes_set(-INFINITY);
    lanes m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        m0 = lanes_max(lanes_load(s + i, LANES), m0);
        m1 = lanes_max(lanes_load(s + i + LANES, LANES), m1);
        m2 = lanes_max(lanes_load(s + i + 2 * LANES, LANES), m2);
        m3 = lanes_max(lanes_load(s + i + 3 * LANES, LANES), m3);
    }
    for (; i < n; i += LANES) {
        m0 = lanes_max(lanes_keep(lanes_load(s + i, LANES), n - i, lowest), m0);
    }
    return lanes_reduce_max(lanes_max(lanes_max(m0, m1), lanes_max(m2, m3)));
}

/// Replaces s[0 ... n) by the exponentials of their distances to `reference` and adds them to the
/// lanes of `total`.
static inline void exponentials(float *s, size_t n, float reference, float *total) {
    const lanes lowest = lanes_set(-INFINITY), from = lanes_set(reference);
    lanes s0 = lanes_load(total, LANES), s1 = lanes_set(0.0f);
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const lanes e0 = lanes_exp2(lanes_sub(lanes_load(s + i, LANES), from));
        const lanes e1 = lanes_exp2(lanes_sub(lanes_load(s + i + LANES, LANES), from));
        lanes_store(s + i, e0, LANES);
        lanes_store(s + i + LANES, e1, LANES);
        s0 = lanes_add(s0, e0);
        s1 = lanes_add(s1, e1);
    }
    for (; i < n; i += LANES) {
        const lanes v = lanes_keep(lanes_load(s + i, LANES), n - i, lowest);
        const lanes e = lanes_exp2(lanes_sub(v, from));
        lanes_store(s + i, e, LANES);
        s0 = lanes_add(s0, e);
    }
    lanes_store(total, lanes_add(s0, s1), LANES);
}

/// Adds the bias to the visible scores of query `r` in the block of keys from `first` on, and
/// brings the reference of their exponentials, and with it what the query has summed, to the
/// largest score so far.
static inline void refer(const struct block *b, size_t r, size_t first, struct mha_span span) {
    const struct mha_sdpa_args *args = b->args;
    const struct query *query = &b->query[r];
    if (span.begin >= span.end) {
        return;
    }
    float *s = b->s + r * b->s_stride + span.begin;
    const size_t n = span.end - span.begin;
    if (args->bias.kind != MHA_BIAS_NONE) {
        const ptrdiff_t distance = sdpa_distance(&args->bias, query->row, first + span.begin);
        if (args->bias.kind == MHA_BIAS_ALIBI) {
            add_alibi(s, n, args->bias.slopes[query->head] * VEC_LOG2_E, (float)distance);
        } else {
            add_t5(s, n, b->t5 + query->head * SDPA_T5_ENTRIES, distance);
        }
    }
    const float before = b->largest[r], now = largest_of(s, n);
    if (now > before) {
        b->largest[r] = now;
        if (before != -INFINITY) {  // else nothing has been summed
            const lanes factor = lanes_exp2(lanes_set(before - now));
            float *sums = b->sums + r * b->width;
            for (size_t i = 0; i < b->width; i += LANES) {
                lanes_store(sums + i, lanes_mul(lanes_load(sums + i, LANES), factor), LANES);
            }
            float *total = b->total + r * LANES;
            lanes_store(total, lanes_mul(lanes_load(total, LANES), factor), LANES);
        }
    }
}

/// Tells whether a result passes the caches: whole lines only.
static inline bool passes(size_t head_dim, const float *o) {
    return SDPA_STREAMS && gemm_on_lines(o, head_dim);
}

/// Turns the visible scores of the block's queries in the block of keys from `first` on into
/// exponentials, a few rows at a time: the references of all of them first, whose maxima across a
/// vector then wait for each other in no row's exponentials. With `fetch`, a bit of the group that
/// follows is fetched beside each query, and the lines of its result: exponentials leave the memory
/// idle. Not inlined: gcc 12 then reads the exponential's table in each step.
__attribute__((noinline)) static void weights_of(struct block *b, size_t first, size_t keys,
                                                 bool fetch) {
    for (size_t top = 0; top < b->count; top += WEIGHT_ROWS) {
        const size_t bottom = sdpa_min(b->count, top + WEIGHT_ROWS);
        for (size_t r = top; r < bottom; r++) {
            refer(b, r, first, span_within(b->query[r].span, first, keys));
        }
        for (size_t r = top; r < bottom; r++) {
            const struct mha_span span = span_within(b->query[r].span, first, keys);
            for (size_t i = 0; fetch && i < PIECES; i++) {
                gemm_ahead_fetch(&b->ahead[i]);
            }
            if (fetch && !passes(b->args->head_dim, b->query[r].o)) {
                fetch_bytes(FETCH_INTO_L2, b->args->head_dim * sizeof(float), b->query[r].o);
            }
            exponentials(b->s + r * b->s_stride + span.begin, span.end - span.begin,
                         softmax_reference(b->largest[r]), b->total + r * LANES);
        }
    }
}

/// Empties the sums of a block's queries.
static void begin(struct block *b) {
    memset(b->sums, 0, b->count * b->width * sizeof(*b->sums));
    memset(b->total, 0, b->count * LANES * sizeof(*b->total));
    for (size_t r = 0; r < b->count; r++) {
        b->largest[r] = -INFINITY;
    }
}

/// Writes the results of a block's queries.
static void finish(const struct block *b) {
    const size_t head_dim = b->args->head_dim;
    for (size_t r = 0; r < b->count; r++) {
        // Zeros where nothing counts; not by a product, in which infinite values make a NaN.
        const float total = lanes_reduce_add(lanes_load(b->total + r * LANES, LANES));
        const bool empty = total == 0.0f;
        const lanes factor = lanes_set(1.0f / total);
        const float *sums = b->sums + r * b->width;
        float *o = b->query[r].o;
        const bool past = passes(head_dim, o);
        for (size_t i = 0; i < head_dim; i += LANES) {
            const lanes v =
                empty ? lanes_set(0.0f) : lanes_mul(lanes_load(sums + i, LANES), factor);
            if (past) {
                SDPA_STREAM(o + i, v);
            } else {
                lanes_store(o + i, v, sdpa_min(head_dim - i, LANES));
            }
        }
    }
}

/// Gets the keys that any query of the block sees.
static struct mha_span seen_by_any(const struct block *b) {
    struct mha_span any = {b->args->seq_kv, 0};
    for (size_t r = 0; r < b->count; r++) {
        const struct mha_span span = b->query[r].span;
        if (span.begin < span.end) {
            any.begin = sdpa_min(any.begin, span.begin);
            any.end = span.end > any.end ? span.end : any.end;
        }
    }
    return any;
}

// --- packed ------------------------------------------------------------------------------------

/// Scores of the block's queries against keys [first, first + keys); tiles that nobody sees are
/// left as they are. Where a mask leaves the last columns of a panel unseen, a tile is as tall as
/// it can be for the columns that its rows see.
static void packed_scores(const struct block *b, size_t first, size_t keys) {
    const size_t depth = SDPA_DEPTH(b->args->head_dim);
    const float *const k = b->args->packed;
    for (size_t panel = 0; panel < keys; panel += SDPA_NR) {
        const size_t from = first + panel, to = from + SDPA_NR;
        for (size_t r = 0, height = 0; r < b->count; r += height) {
            size_t cols = 0;
            do {
                cols += LANES;
                height = SDPA_ROWS(b->count - r, cols);
            } while (cols < SDPA_NR && b->query[r + height - 1].span.end > from + cols);
            if (b->query[r].span.begin < to && b->query[r + height - 1].span.end > from) {
                SDPA_SCORE_TILE(height, cols, depth, b->query[r].q, b->q_stride, k + from * depth,
                                SDPA_NR, false, b->s + r * b->s_stride + panel, b->s_stride);
            }
        }
    }
}

/// Adds weights [from, to) of the block of keys, times their values, to the sums of query r. `v` is
/// `cols` columns of values, from the block's first key on.
static inline void add_values(const struct block *b, size_t r, size_t col, size_t cols,
                              const float *v, size_t v_stride, size_t from, size_t to) {
    if (from < to) {
        SDPA_TILE_ROW(cols, to - from, b->s + r * b->s_stride + from, v + from * v_stride, v_stride,
                      b->sums + r * b->width + col);
    }
}

static void packed_values(const struct block *b, size_t first, size_t keys) {
    const struct mha_sdpa_args *args = b->args;
    const float *const values =
        (const float *)args->packed +
        gemm_packed_count(SDPA_DEPTH(args->head_dim), args->seq_kv, SDPA_NR);
    const bool as_is = direct(args);
    const size_t step = as_is ? gemm_direct_width(args->head_dim, SDPA_NR) : SDPA_NR;
    const size_t v_stride = as_is ? args->v_stride : SDPA_NR;
    for (size_t col = 0; col < args->head_dim; col += step) {
        const float *const v = as_is ? (const float *)args->v + first * v_stride + col
                                     : values + col * args->seq_kv + first * SDPA_NR;
        const size_t left = (args->head_dim - col + LANES - 1) / LANES * LANES;
        const size_t cols = sdpa_min(left, step);
        for (size_t r = 0, height = 0; r < b->count; r += height) {
            height = SDPA_ROWS(b->count - r, cols);
            const struct mha_span low = span_within(b->query[r].span, first, keys);
            const struct mha_span high = span_within(b->query[r + height - 1].span, first, keys);
            // Spans move forwards from row to row: all see what the last one sees first up to what
            // the first one sees last. What is beside that are steps of the tile where it is one
            // key more from row to row; else it goes row by row.
            const size_t from = high.begin, to = low.end > from ? low.end : from;
            const unsigned stairs =
                from < to ? gemm_stairs_of(height, from - low.begin, high.end - to) : 0;
            const bool before = (stairs & GEMM_STAIRS_BEFORE) != 0;
            const bool after = (stairs & GEMM_STAIRS_AFTER) != 0;
            for (size_t i = r; !before && low.begin != from && i < r + height; i++) {
                const struct mha_span span = span_within(b->query[i].span, first, keys);
                add_values(b, i, col, cols, v, v_stride, span.begin, sdpa_min(span.end, from));
            }
            if (from < to) {
                SDPA_TILE_STAIRS(height, cols, to - from, b->s + r * b->s_stride + from,
                                 b->s_stride, v + from * v_stride, v_stride, stairs, true,
                                 b->sums + r * b->width + col, b->width);
            }
            for (size_t i = r; !after && high.end != to && i < r + height; i++) {
                const struct mha_span span = span_within(b->query[i].span, first, keys);
                add_values(b, i, col, cols, v, v_stride, span.begin > to ? span.begin : to,
                           span.end);
            }
        }
    }
}

static void packed_block(struct block *b) {
    const struct mha_span any = seen_by_any(b);
    begin(b);
    for (size_t first = any.begin / SDPA_KEYS * SDPA_KEYS; first < any.end; first += SDPA_KEYS) {
        const size_t keys = sdpa_min(any.end - first, SDPA_KEYS);
        packed_scores(b, first, keys);
        weights_of(b, first, keys, GEMM_AHEAD_BYTES > 0 && first + keys >= any.end);
        packed_values(b, first, keys);
    }
    finish(b);
}

// --- few queries -------------------------------------------------------------------------------

/// Gets the row of K of key `key`.
static inline const void *few_keys_at(const struct mha_sdpa_args *args, size_t key) {
    return widen_at(SDPA_TYPE, args->k, key * args->k_stride);
}

/// Gets the row of V of key `key`.
static inline const void *few_values_at(const struct mha_sdpa_args *args, size_t key) {
    return widen_at(SDPA_TYPE, args->v, key * args->v_stride);
}

/// Computes the scores of `keys` keys, a piece, from key `from` on of the block that begins at
/// `first`; meanwhile fetches as many keys or values from `ahead` on, unless that is NULL.
static void few_scores(const struct block *b, size_t first, size_t from, size_t keys,
                       const void *ahead) {
    const struct mha_sdpa_args *args = b->args;
    const float scale = args->scale * VEC_LOG2_E;
    const float *q[FEW_QUERIES];
    for (size_t r = 0; r < b->count; r++) {
        q[r] = b->query[r].q;
    }
    for (size_t j = 0, count = 0; j < keys; j += count) {
        count = dots_count(keys - j);
        const void *k = few_keys_at(args, first + from + j);
        for (size_t r = 0, some = 0; r < b->count; r += some) {
            some = few_together(b->count - r);
            dots(some, q + r, count, k, args->k_stride,
                 r == 0 && ahead != NULL ? widen_at(SDPA_TYPE, ahead, j * args->k_stride) : NULL,
                 false, args->head_dim, scale, b->s + r * b->s_stride + from + j, b->s_stride);
        }
    }
}

/// Adds the values of such a piece; meanwhile fetches as many values or keys from `ahead` on,
/// unless that is NULL.
static void few_values(const struct block *b, size_t first, size_t from, size_t keys,
                       const void *ahead) {
    const struct mha_sdpa_args *args = b->args;
    for (size_t r = 0, alike = 0; r < b->count; r += alike) {
        // Queries that see the same keys share what is loaded of their values.
        const struct mha_span span = span_within(b->query[r].span, first + from, keys);
        alike = 1;
        while (alike < FEW_TOGETHER && r + alike < b->count) {
            const struct mha_span other = span_within(b->query[r + alike].span, first + from, keys);
            if (other.begin != span.begin || other.end != span.end) {
                break;
            }
            alike++;
        }
        alike = few_together(alike);
        if (span.begin >= span.end) {
            continue;
        }
        const size_t at = from + span.begin;
        axpys(alike, args->head_dim, b->s + r * b->s_stride + at, b->s_stride,
              span.end - span.begin, few_values_at(args, first + at), args->v_stride, true,
              b->sums + r * b->width, b->width,
              r == 0 && ahead != NULL ? widen_at(SDPA_TYPE, ahead, span.begin * args->v_stride)
                                      : NULL);
    }
}

static void few_block(struct block *b) {
    const struct mha_sdpa_args *args = b->args;
    const size_t bytes = args->seq_kv * args->head_dim * widen_bytes(SDPA_TYPE);
    const bool fetch = bytes > (b->count > 1 ? FEW_SHARED_NEAR_BYTES : FEW_NEAR_BYTES);
    const size_t piece = fetch ? few_piece(args->head_dim) : FEW_KEYS;
    const struct mha_span any = seen_by_any(b);
    begin(b);
    for (size_t first = any.begin / FEW_KEYS * FEW_KEYS; first < any.end; first += FEW_KEYS) {
        const size_t keys = sdpa_min(any.end - first, FEW_KEYS);
        const size_t start = any.begin > first ? (any.begin - first) / piece * piece : 0;
        // What a piece fetches: the next one, behind the last keys the first values, and behind
        // those the first keys of the next block.
        const void *ahead = few_values_at(args, first + start);
        for (size_t from = start; from < keys; from += piece) {
            const size_t next = from + piece;
            few_scores(b, first, from, sdpa_min(keys - from, piece),
                       !fetch        ? NULL
                       : next < keys ? few_keys_at(args, first + next)
                                     : ahead);
        }
        weights_of(b, first, keys, false);
        ahead = first + keys < any.end ? few_keys_at(args, first + keys) : NULL;
        for (size_t from = start; from < keys; from += piece) {
            const size_t next = from + piece;
            few_values(b, first, from, sdpa_min(keys - from, piece),
                       !fetch        ? NULL
                       : next < keys ? few_values_at(args, first + next)
                                     : ahead);
        }
    }
    finish(b);
}

// --- both --------------------------------------------------------------------------------------

/// Makes the block of `count` queries from number `first` on, counted over rows and then heads, and
/// computes it.
static void run_block(struct block *b, size_t first, size_t count) {
    const struct mha_sdpa_args *args = b->args;
    b->count = count;
    for (size_t r = 0; r < count; r++) {
        const size_t head = (first + r) / args->rows, row = (first + r) % args->rows;
        const void *q =
            widen_at(SDPA_TYPE, args->q, head * args->q_head_stride + row * args->q_stride);
        if (SDPA_TYPE != WIDEN_F32) {
            float *const own = b->room + r * b->q_stride;
            (args->packed ? SDPA_PREPARE : SDPA_WIDEN)(SDPA_TYPE, 1, args->head_dim, q, 0, own, 0);
            q = own;
        }
        b->query[r] = (struct query){
            .span = mha_row_span(&args->mask, args->first_row + row),
            .head = head,
            .row = args->first_row + row,
            .q = q,
            .o = args->o + head * args->o_head_stride + row * args->o_stride,
        };
    }
    if (args->packed) {
        packed_block(b);
    } else {
        few_block(b);
    }
}

static void run(const struct mha_sdpa_args *args, void *workspace) {
    const size_t queries = args->heads * args->rows;
    const size_t most = args->packed ? SDPA_QUERIES : FEW_QUERIES;
    // One query per head is decoding: the heads of the group are then the rows of a block. Without
    // packing it does not matter whose queries meet.
    const bool decode = args->rows == 1;
    const size_t run = decode || !args->packed ? queries : args->rows;
    struct block b = {
        .args = args,
        .q_stride = SDPA_TYPE != WIDEN_F32 ? widen_stride(row_depth(args->packed, args->head_dim))
                    : decode               ? args->q_head_stride
                                           : args->q_stride,
        .width = padded(args->head_dim),
        .s_stride = (args->packed ? SDPA_KEYS : FEW_KEYS) + PAD,
        .s = workspace,
    };
    b.sums = b.s + most * b.s_stride;
    b.largest = b.sums + most * b.width;
    b.total = b.largest + most;
    b.room = b.total + most * LANES;
    b.t5 = b.room + widened(most, row_depth(args->packed, args->head_dim));
    b.ahead[0] = gemm_ahead_opposite(SDPA_TYPE, args->first_row, args->rows, args->seq_kv,
                                     args->head_dim, args->k, args->k_stride, queries);
    b.ahead[1] = gemm_ahead_opposite(SDPA_TYPE, args->first_row, args->rows, args->seq_kv,
                                     args->head_dim, args->v, args->v_stride, queries);
    const bool fetch = b.ahead[0].at < b.ahead[0].end && args->q_stride == args->head_dim;
    b.ahead[2] = gemm_ahead_of(SDPA_TYPE, fetch ? queries * args->head_dim : 0, args->q,
                               args->heads * args->q_head_stride, queries);
    if (args->bias.kind == MHA_BIAS_T5) {
        for (size_t h = 0; h < args->heads; h++) {
            sdpa_t5_by_distance(&args->bias, h, VEC_LOG2_E, b.t5 + h * SDPA_T5_ENTRIES);
        }
    }
    // Blocks of about the same size.
    const size_t blocks = (run + most - 1) / most;
    const size_t even = blocks > 0 ? (run + blocks - 1) / blocks : 0;
    const size_t step = args->packed ? (even + SDPA_MR - 1) / SDPA_MR * SDPA_MR : even;
    for (size_t start = 0; start < queries; start += run) {
        for (size_t i = 0; i < run; i += step) {
            run_block(&b, start + i, sdpa_min(run - i, step));
        }
    }
    SDPA_FENCE();
}
