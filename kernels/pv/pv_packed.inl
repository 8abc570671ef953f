/// pv over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define PV_TILE, PV_MR, PV_NR, PV_PACK and PV_ROW.
///
/// Algorithm: V of a kv head is packed once into panels of PV_NR columns, cut into blocks of keys
/// (Goto and van de Geijn 2008). A tile of rows takes the keys that all of its rows see; what
/// single rows see beyond them is added row by row, so that a masked key is read into no result and
/// costs nothing. With one query per head (decoding) packing would cost more than the product: rows
/// of V are taken from where they are.
///
/// Error: every element is one chain of n fused multiply-adds over the n visible keys, in their
/// order: |error| <= gamma_n * sum_j |p_j v_ji| (Higham 2002, section 3.1).
///
/// Tail: rows by tiles with fewer rows, columns by masked loads and stores; nothing past the arrays
/// is read or written.
#include <stddef.h>

#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return shape->seq_q == 1
               ? 0
               : gemm_packed_count(shape->seq_kv, shape->head_dim, PV_NR) * sizeof(float);
}

static void pack(const struct mha_pv_args *args, void *packed) {
    gemm_pack_deep(PV_PACK, PV_NR, args->v, args->v_stride, args->head_dim, args->seq_kv, packed);
}

/// Gets the part of a span within the keys [begin, end).
static inline struct mha_span within(struct mha_span span, size_t begin, size_t end) {
    span.begin = span.begin < begin ? begin : span.begin;
    span.end = span.end > end ? end : span.end;
    span.end = span.end < span.begin ? span.begin : span.end;
    return span;
}

/// Adds those keys of a block that are among `keys` to one row, one panel of which is `panel`.
static inline void add_row(struct mha_span keys, size_t width, size_t first, const float *p,
                           const float *panel, float *o) {
    if (keys.begin < keys.end) {
        PV_TILE(1, width, keys.end - keys.begin, p + keys.begin, 0,
                panel + (keys.begin - first) * PV_NR, true, o, 0);
    }
}

/// Adds the keys [first, first + keys), a block, to `height` rows from `row` on, one panel.
static inline void add_tile(const struct mha_pv_args *args, size_t row, size_t height, size_t first,
                            size_t keys, size_t width, const float *p, const float *panel,
                            float *o) {
    // Spans of later rows begin and end later.
    const struct mha_mask *mask = &args->mask;
    const size_t last = first + keys;
    const struct mha_span top = within(mha_row_span(mask, args->first_row + row), first, last);
    const struct mha_span bottom =
        within(mha_row_span(mask, args->first_row + row + height - 1), first, last);
    const bool even = top.begin == bottom.begin && top.end == bottom.end;
    // Where no key is seen by all rows, the rows go one by one.
    struct mha_span shared = {bottom.begin, top.end};
    if (shared.end < shared.begin) {
        shared.begin = shared.end = last;
    }
    for (size_t r = row; !even && r < row + height; r++) {
        const struct mha_span own = mha_row_span(mask, args->first_row + r);
        add_row(within(own, first, shared.begin), width, first, p + r * args->p_stride, panel,
                o + r * args->o_stride);
    }
    if (shared.begin < shared.end) {
        PV_TILE(height, width, shared.end - shared.begin, p + row * args->p_stride + shared.begin,
                args->p_stride, panel + (shared.begin - first) * PV_NR, true,
                o + row * args->o_stride, args->o_stride);
    }
    for (size_t r = row; !even && r < row + height; r++) {
        const struct mha_span own = mha_row_span(mask, args->first_row + r);
        add_row(within(own, shared.end, last), width, first, p + r * args->p_stride, panel,
                o + r * args->o_stride);
    }
}

/// Adds the keys [first, first + keys), a block, to the rows [top, bottom) of one head.
static void add_block(const struct mha_pv_args *args, size_t top, size_t bottom, size_t first,
                      size_t keys, const float *p, float *o) {
    const float *block =
        (const float *)args->packed + gemm_packed_count(first, args->head_dim, PV_NR);
    for (size_t col = 0; col < args->head_dim; col += PV_NR) {
        const size_t width = args->head_dim - col < PV_NR ? args->head_dim - col : PV_NR;
        for (size_t row = top, height = 0; row < bottom; row += height) {
            height = gemm_tile_rows(bottom - row, PV_MR);
            const size_t left = bottom - row - height;
            if (col == 0) {
                gemm_prefetch(left < PV_MR ? left : PV_MR, keys,
                              p + (bottom - left) * args->p_stride + first, args->p_stride);
            }
            add_tile(args, row, height, first, keys, width, p, block + col * keys, o + col);
        }
    }
}

static void run_packed(const struct mha_pv_args *args) {
    const size_t deep = gemm_block_depth(PV_NR);
    const size_t block = GEMM_ROW_BLOCK_BYTES / (deep * sizeof(float)) / PV_MR * PV_MR;
    for (size_t h = 0; h < args->heads; h++) {
        const float *p = (const float *)args->p + h * args->p_head_stride;
        float *o = args->o + h * args->o_head_stride;
        for (size_t top = 0; top < args->rows; top += block) {
            const size_t bottom = args->rows - top < block ? args->rows : top + block;
            for (size_t r = top; r < bottom; r++) {
                for (size_t i = 0; i < args->head_dim; i++) {
                    o[r * args->o_stride + i] = 0.0f;
                }
            }
            const size_t begin = mha_row_span(&args->mask, args->first_row + top).begin;
            const size_t end = mha_row_span(&args->mask, args->first_row + bottom - 1).end;
            for (size_t first = begin / deep * deep; first < end; first += deep) {
                add_block(args, top, bottom, first, gemm_depth_block(args->seq_kv - first, PV_NR),
                          p, o);
            }
        }
    }
}

/// The rows straight from V: all heads take a block of keys before the next one is touched.
static void run_direct(const struct mha_pv_args *args) {
    const size_t most = GEMM_PANEL_GROUP_BYTES / sizeof(float) / args->head_dim;
    const size_t block = most > 0 ? most : 1;
    for (size_t r = 0; r < args->rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        size_t first = span.begin;
        do {
            const size_t keys = span.end - first < block ? span.end - first : block;
            for (size_t h = 0; h < args->heads; h++) {
                PV_ROW(
                    args->head_dim, keys,
                    (const float *)args->p + h * args->p_head_stride + r * args->p_stride + first,
                    (const float *)args->v + first * args->v_stride, args->v_stride,
                    first > span.begin, args->o + h * args->o_head_stride + r * args->o_stride);
            }
            first += keys;
        } while (first < span.end);
    }
}

static void run(const struct mha_pv_args *args, void *workspace) {
    (void)workspace;
    if (args->packed) {
        run_packed(args);
    } else {
        run_direct(args);
    }
}
