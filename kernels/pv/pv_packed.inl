/// pv over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define PV_TILE, PV_TILE_ROW, PV_ROWS, PV_MR, PV_NR, PV_PACK,
/// PV_WIDEN and PV_TYPE, the type of P's and V's elements. Where a float of a panel and of a block
/// of P holds two keys, they define PV_KEYS as 2, PV_PREPARE, which makes rows of a block of P in
/// place of PV_WIDEN, PV_PACK as one that takes V as it is, and PV_SINGLE, which adds one key of a
/// pair. PV_TILE is a gemm_next_fn; PV_TILE_LAST is the one behind which nothing is added to its
/// rows, PV_TILE unless they define it: it may let them pass the caches, in the order of PV_FENCE.
///
/// Algorithm: V of a kv head is packed once into panels of PV_NR columns, cut into blocks of keys
/// (Goto and van de Geijn 2008), unless its rows are what a tile takes as it is, see gemm_direct().
/// A tile of rows takes the keys that all of its rows see, and those beside them where it is one
/// key more from row to row; else what single rows see goes row by row. So a masked key is read
/// into no result and costs nothing. With one query per head (decoding) packing would cost more
/// than the product: rows of V are taken from where they are. bf16 and f16 are widened to floats on
/// the way: a block of keys before it is packed, a block of P before its tiles, and where V is
/// taken as it is, in registers. Pairs are taken from P where they are, unless its rows are not
/// made of whole ones. Where GEMM_AHEAD_BYTES lets it, the next group's V is fetched meanwhile.
///
/// Error: every element is one chain of n fused multiply-adds over the n visible keys, in their
/// order: |error| <= gamma_n * sum_j |p_j v_ji| (Higham 2002, section 3.1).
///
/// Tail: rows by tiles with fewer rows, columns by masked loads and stores; nothing past the arrays
/// is read or written.
#include <stddef.h>
#include <stdint.h>

#include "mha_kernel.h"
#define AXPYS_TYPE PV_TYPE
#include "axpys.inl"

#ifndef PV_TILE_LAST
#define PV_TILE_LAST PV_TILE
#define PV_FENCE() ((void)0)
#endif

#ifndef PV_KEYS
#define PV_KEYS 1
#define PV_PREPARE PV_WIDEN
#define PV_SINGLE(width, second, p, panel, o) ((void)0)
#endif

/// Bytes of V that all heads pass before the next keys are touched, where V is taken as it is: a
/// quarter of a 32 KiB L1 data cache. Twice as many cost
/// a fifth on Emerald Rapids.
#define PV_NEAR_BYTES ((size_t)8192)

/// Most keys then.
enum { PV_NEAR_KEYS = 256 };

/// Bytes of V up to which heads that pass its rows as single strips do not fetch them ahead: 200
/// KiB to 1.5 MiB fetched took 3 to 13 % more on Zen 5, 2 MiB 10 % less to 4 % more, 3 and 4 MiB 8
/// to 12 % less.
#define PV_WHOLE_NEAR_BYTES ((size_t)1572864)

/// Gets the floats that hold `keys` keys, from an even one on.
static inline size_t slots(size_t keys) {
    return (keys + PV_KEYS - 1) / PV_KEYS;
}

/// Gets the keys of all blocks but the last.
static inline size_t block_keys(void) {
    return gemm_block_depth(PV_NR) * PV_KEYS;
}

/// Gets the keys of the block that begins where `left` are left.
static inline size_t keys_of_block(size_t left) {
    return left < block_keys() ? left : block_keys();
}

static size_t packed_bytes(const struct mha_shape *shape) {
    const size_t panels = gemm_packed_count(slots(shape->seq_kv), shape->head_dim, PV_NR);
    // Behind the panels is the room in which keys are widened.
    const size_t room =
        PV_TYPE == WIDEN_F32 || PV_KEYS > 1 ? 0 : block_keys() * widen_stride(shape->head_dim);
    return shape->seq_q == 1 ? 0 : (panels + room) * sizeof(float);
}

/// Tells whether tiles take V as it is.
static inline bool direct(const struct mha_pv_args *args) {
    return gemm_direct(PV_TYPE, args->v, args->v_stride, args->head_dim);
}

static void pack(const struct mha_pv_args *args, void *packed) {
    float *panels = packed;
    if (direct(args)) {
        return;
    }
    if (PV_TYPE == WIDEN_F32) {
        gemm_pack_deep(PV_PACK, PV_NR, args->v, args->v_stride, args->head_dim, args->seq_kv,
                       panels);
        return;
    }
    const size_t stride = widen_stride(args->head_dim);
    float *room = panels + gemm_packed_count(slots(args->seq_kv), args->head_dim, PV_NR);
    for (size_t first = 0; first < args->seq_kv; first += block_keys()) {
        const size_t keys = keys_of_block(args->seq_kv - first);
        const void *v = widen_at(PV_TYPE, args->v, first * args->v_stride);
        float *block = panels + gemm_packed_count(slots(first), args->head_dim, PV_NR);
        if (PV_KEYS > 1) {
            PV_PACK(v, args->v_stride, args->head_dim, keys, block);
            continue;
        }
        PV_WIDEN(PV_TYPE, keys, args->head_dim, v, args->v_stride, room, stride);
        PV_PACK(room, stride, args->head_dim, keys, block);
    }
}

/// Rows that pass a block of keys before the next one is touched: whole tiles of any height.
static inline size_t row_block(void) {
    const size_t tallest = PV_ROWS(SIZE_MAX, 1);
    const size_t rows = gemm_row_block(PV_MR, gemm_block_depth(PV_NR));
    return (rows + tallest - 1) / tallest * tallest;
}

/// Gets the keys that all heads pass before the next ones are touched, where V is taken as it is.
static inline size_t near_keys(size_t head_dim) {
    const size_t keys = PV_NEAR_BYTES / widen_bytes(PV_TYPE) / head_dim;
    return keys < 1 ? 1 : keys < PV_NEAR_KEYS ? keys : PV_NEAR_KEYS;
}

/// Room for the widened weights of a block of rows and keys, or of near_keys() of the heads that go
/// together.
static size_t workspace_bytes(const struct mha_shape *shape) {
    const size_t count = shape->seq_q == 1 ? FEW_TOGETHER * widen_stride(near_keys(shape->head_dim))
                                           : row_block() * widen_stride(gemm_block_depth(PV_NR));
    return PV_TYPE == WIDEN_F32 ? 0 : count * sizeof(float);
}

/// Gets the first key, the even one of a pair, that row `row` of an item sees.
static inline size_t first_key(const struct mha_pv_args *args, size_t row) {
    return mha_row_span(&args->mask, args->first_row + row).begin / PV_KEYS * PV_KEYS;
}

/// Gets the part of a span within the keys [begin, end).
static inline struct mha_span within(struct mha_span span, size_t begin, size_t end) {
    span.begin = span.begin < begin ? begin : span.begin;
    span.end = span.end > end ? end : span.end;
    span.end = span.end < span.begin ? span.begin : span.end;
    return span;
}

/// Adds those keys of a block, which begins at `first`, that are among `keys` to one row, `width`
/// columns of which are `v`; `p` is the row's weight of key `first`.
static inline void add_row(struct mha_span keys, size_t width, size_t first, const float *p,
                           const float *v, size_t v_stride, float *o) {
    if (PV_KEYS > 1 && keys.begin % 2 != 0 && keys.begin < keys.end) {
        PV_SINGLE(width, true, p + (keys.begin - first) / PV_KEYS,
                  v + (keys.begin - first) / PV_KEYS * v_stride, o);
        keys.begin++;
    }
    const size_t begin = (keys.begin - first) / PV_KEYS, end = (keys.end - first) / PV_KEYS;
    if (keys.begin < keys.end && begin < end) {
        PV_TILE_ROW(width, end - begin, p + begin, v + begin * v_stride, v_stride, o);
    }
    if (PV_KEYS > 1 && keys.end % 2 != 0 && keys.begin < keys.end) {
        PV_SINGLE(width, false, p + end, v + end * v_stride, o);
    }
}

/// Adds those of `keys` that each of `height` rows from `row` on sees to it, as add_row().
static inline void add_rows(const struct mha_pv_args *args, size_t row, size_t height, size_t first,
                            struct mha_span keys, size_t width, const float *p, size_t p_stride,
                            const float *v, size_t v_stride, float *o) {
    for (size_t r = row; r < row + height; r++) {
        const struct mha_span own = mha_row_span(&args->mask, args->first_row + r);
        add_row(within(own, keys.begin, keys.end), width, first, p + (r - row) * p_stride, v,
                v_stride, o + r * args->o_stride);
    }
}

/// Makes `width` columns of `height` rows zeros.
static inline void clear(size_t height, size_t width, float *o, size_t o_stride) {
    for (size_t r = 0; r < height; r++) {
        for (size_t i = 0; i < width; i++) {
            o[r * o_stride + i] = 0.0f;
        }
    }
}

/// Adds the keys [first, first + keys), a block, to `height` rows from `row` on, `width` columns of
/// which are `v`, or with `fresh` lets them be the sum; `p` is the weight of key `first` in the
/// first of them. The weights at `next` are fetched, see gemm_next_fn.
static inline void add_tile(const struct mha_pv_args *args, size_t row, size_t height, size_t first,
                            size_t keys, size_t width, const float *p, size_t p_stride,
                            const float *v, size_t v_stride, bool fresh, float *o,
                            const float *next) {
    // Spans of later rows begin and end later.
    const struct mha_mask *mask = &args->mask;
    const size_t last = first + keys;
    const struct mha_span top = within(mha_row_span(mask, args->first_row + row), first, last);
    const struct mha_span lowest = mha_row_span(mask, args->first_row + row + height - 1);
    const struct mha_span bottom = within(lowest, first, last);
    struct mha_span shared = {bottom.begin, top.end};
    // What single rows see beside these are steps of the tile where it is one key a row.
    const bool some = PV_KEYS == 1 && shared.begin < shared.end;
    const unsigned stairs =
        some ? gemm_stairs_of(height, shared.begin - top.begin, bottom.end - shared.end) : 0;
    const bool before = (stairs & GEMM_STAIRS_BEFORE) != 0;
    const bool after = (stairs & GEMM_STAIRS_AFTER) != 0;
    if (PV_KEYS > 1) {
        // Whole pairs; the last one of an odd number of keys is filled up with zeros.
        shared.begin += shared.begin % 2;
        shared.end -= shared.end < args->seq_kv ? shared.end % 2 : 0;
    }
    const bool begin_alone = !before && (top.begin != bottom.begin || shared.begin != top.begin);
    const bool end_alone = !after && (top.end != bottom.end || shared.end != top.end);
    // Where no key is seen by all rows, the rows go one by one.
    if (shared.end < shared.begin) {
        shared.begin = shared.end = last;
    }
    float *const rows = o + row * args->o_stride;
    // Without keys before those that all see, the tile writes what else it would add to zeros.
    const bool add = !fresh || (!before && top.begin < shared.begin) || shared.begin == shared.end;
    if (fresh && add) {
        clear(height, width, rows, args->o_stride);
    }
    if (begin_alone) {
        add_rows(args, row, height, first, (struct mha_span){first, shared.begin}, width, p,
                 p_stride, v, v_stride, o);
    }
    if (shared.begin < shared.end) {
        const size_t begin = (shared.begin - first) / PV_KEYS;
        (lowest.end <= last && !end_alone ? PV_TILE_LAST : PV_TILE)(
            height, width, slots(shared.end - first) - begin, p + begin, p_stride,
            v + begin * v_stride, v_stride, stairs, add, rows, args->o_stride, next);
    }
    if (end_alone) {
        add_rows(args, row, height, first, (struct mha_span){shared.end, last}, width, p, p_stride,
                 v, v_stride, o);
    }
}

/// Tells whether tiles take the weights of a block of keys where they are: floats, or whole pairs
/// that begin where floats may.
static inline bool weights_direct(const struct mha_pv_args *args, const void *weights,
                                  size_t keys) {
    return PV_TYPE == WIDEN_F32 ||
           (PV_KEYS > 1 && keys % PV_KEYS == 0 && args->p_stride % PV_KEYS == 0 &&
            (uintptr_t)weights % sizeof(float) == 0);
}

/// Adds the keys [first, first + keys), a block, to the rows [top, bottom) of one head, or with
/// `fresh` lets them be the sum. `following` are the weights that the next block begins with.
static void add_block(const struct mha_pv_args *args, size_t top, size_t bottom, size_t first,
                      size_t keys, const void *weights, float *room, bool fresh, float *o,
                      const void *following, struct gemm_ahead *ahead) {
    const void *from = widen_at(PV_TYPE, weights, top * args->p_stride + first);
    const bool in_place = weights_direct(args, from, keys);
    const size_t p_stride =
        in_place ? args->p_stride / PV_KEYS : widen_stride(gemm_block_depth(PV_NR));
    const float *p = in_place ? from : room;
    if (!in_place) {
        // Without the weights of keys that no row sees.
        const size_t end = mha_row_span(&args->mask, args->first_row + bottom - 1).end;
        const size_t seen = slots(end - first) * PV_KEYS;
        PV_PREPARE(PV_TYPE, bottom - top, seen < keys ? seen : keys, from, args->p_stride, room,
                   p_stride);
    }
    const float *block =
        (const float *)args->packed + gemm_packed_count(slots(first), args->head_dim, PV_NR);
    const bool as_is = direct(args);
    const size_t step = as_is ? gemm_direct_width(args->head_dim, PV_NR) : PV_NR;
    const size_t v_stride = as_is ? args->v_stride : PV_NR;
    for (size_t col = 0; col < args->head_dim; col += step) {
        const size_t width = args->head_dim - col < step ? args->head_dim - col : step;
        const float *v =
            as_is ? (const float *)args->v + first * v_stride + col : block + col * slots(keys);
        for (size_t row = top, height = 0; row < bottom; row += height) {
            height = PV_ROWS(bottom - row, width);
            // Once: the first columns fetch the rows of the block, the last ones what follows it.
            const size_t below = row + height;
            const float *next = NULL;
            if (in_place && below < bottom && col == 0) {
                const size_t key = first_key(args, below);
                next = p + (below - top) * p_stride + (key > first ? key - first : 0) / PV_KEYS;
            } else if (in_place && below == bottom && args->head_dim - col <= step) {
                next = following;
            }
            add_tile(args, row, height, first, keys, width, p + (row - top) * p_stride, p_stride, v,
                     v_stride, fresh, o + col, next);
            if (GEMM_AHEAD_BYTES > 0) {
                gemm_ahead_fetch(ahead);
            }
        }
    }
}

static void run_packed(const struct mha_pv_args *args, float *room) {
    const size_t deep = block_keys();
    const size_t block = row_block();
    struct gemm_ahead ahead = gemm_ahead_opposite(
        PV_TYPE, args->first_row, args->rows, args->seq_kv, args->head_dim, args->v, args->v_stride,
        args->heads * gemm_tile_count(PV_MR, PV_NR, args->rows, args->head_dim));
    for (size_t h = 0; h < args->heads; h++) {
        const void *p = widen_at(PV_TYPE, args->p, h * args->p_head_stride);
        float *o = args->o + h * args->o_head_stride;
        for (size_t top = 0; top < args->rows; top += block) {
            const size_t bottom = args->rows - top < block ? args->rows : top + block;
            const size_t begin =
                mha_row_span(&args->mask, args->first_row + top).begin / deep * deep;
            const size_t end = mha_row_span(&args->mask, args->first_row + bottom - 1).end;
            if (begin >= end) {
                clear(bottom - top, args->head_dim, o + top * args->o_stride, args->o_stride);
            }
            for (size_t first = begin; first < end; first += deep) {
                // The next keys, the next rows, or those of the next head, in the next item if need
                // be.
                size_t row = top, key = first + deep, head = 0;
                if (key >= end) {
                    row = bottom < args->rows ? bottom : 0;
                    key = first_key(args, row);
                    head = bottom < args->rows ? 0 : args->p_head_stride;
                }
                const void *next = widen_at(PV_TYPE, p, head + row * args->p_stride + key);
                add_block(args, top, bottom, first, keys_of_block(args->seq_kv - first), p, room,
                          first == begin, o, next, &ahead);
            }
        }
    }
}

/// The rows straight from V: all heads take a block of keys before the next one is touched, which
/// is fetched meanwhile if it is `far`, a constant where this is called.
__attribute__((always_inline)) static inline void run_rows(const struct mha_pv_args *args,
                                                           const bool far, float *room) {
    const size_t block = near_keys(args->head_dim);
    for (size_t r = 0; r < args->rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        size_t first = span.begin;
        do {
            const size_t keys = span.end - first < block ? span.end - first : block;
            const size_t left = span.end - first - keys;
            const void *v = widen_at(PV_TYPE, args->v, first * args->v_stride);
            const void *ahead =
                far && left > 0 ? widen_at(PV_TYPE, v, keys * args->v_stride) : NULL;
            for (size_t h = 0, some = 0; h < args->heads; h += some) {
                some = few_together(args->heads - h);
                const void *p = widen_at(PV_TYPE, args->p,
                                         h * args->p_head_stride + r * args->p_stride + first);
                size_t p_stride = args->p_head_stride;
                if (PV_TYPE != WIDEN_F32) {
                    PV_WIDEN(PV_TYPE, some, keys, p, p_stride, room, widen_stride(keys));
                    p = room;
                    p_stride = widen_stride(keys);
                }
                axpys(some, args->head_dim, p, p_stride, keys, v, args->v_stride,
                      first > span.begin, args->o + h * args->o_head_stride + r * args->o_stride,
                      args->o_head_stride, h == 0 ? ahead : NULL);
            }
            first += keys;
        } while (first < span.end);
    }
}

// Not inlined into each other: the loop of each has the registers for its addresses.
__attribute__((noinline)) static void run_near(const struct mha_pv_args *args, float *room) {
    run_rows(args, false, room);
}

__attribute__((noinline)) static void run_far(const struct mha_pv_args *args, float *room) {
    run_rows(args, true, room);
}

static void run(const struct mha_pv_args *args, void *workspace) {
    if (args->packed) {
        run_packed(args, workspace);
        PV_FENCE();
    } else {
        // Whole rows are one stream, which hardware follows by itself; and so it does for a while
        // where heads share them. Rows of several strips it follows badly.
        const size_t bytes = args->seq_kv * args->head_dim * widen_bytes(PV_TYPE);
        const bool far = axpys_whole(few_together(args->heads), args->head_dim)
                             ? args->heads > 1 && bytes > PV_WHOLE_NEAR_BYTES
                             : bytes > FEW_NEAR_BYTES;
        (far ? run_far : run_near)(args, workspace);
    }
}
