/// pv in C that compilers vectorise well: packed_bytes(), pack() and run(), the same source for
/// every ISA level. Includers define the block, GEMM_ROWS queries by GEMM_COLS columns.
///
/// Algorithm: V of a kv head is packed once into panels, cut into blocks of keys; a block of rows
/// takes the keys that all of its rows see, and single rows what they see beyond them. Blocks and
/// tails: gemm_autovec.inl. With one query per head (decoding) V is read as it is. bf16 and f16
/// (GEMM_ELEMENT, GEMM_LOAD) become floats on the way, a block of P before its products.
///
/// Error: every element is a sum of n products over the n visible keys, some of them added up in
/// blocks first: |error| <= gamma_n * sum_j |p_j v_ji| (Higham 2002, section 3.1).
#include <stddef.h>

#include "gemm_autovec.inl"
#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return shape->seq_q == 1
               ? 0
               : gemm_packed_count(shape->seq_kv, shape->head_dim, GEMM_COLS) * sizeof(float);
}

static void pack(const struct mha_pv_args *args, void *packed) {
    for (size_t first = 0; first < args->seq_kv; first += gemm_block_depth(GEMM_COLS)) {
        gemm_autovec_pack((const GEMM_ELEMENT *)args->v + first * args->v_stride, args->v_stride,
                          args->head_dim, gemm_depth_block(args->seq_kv - first, GEMM_COLS),
                          (float *)packed + gemm_packed_count(first, args->head_dim, GEMM_COLS));
    }
}

/// Room for the widened weights of a block of rows and keys.
static size_t workspace_bytes(const struct mha_shape *shape) {
    (void)shape;
    return GEMM_NARROW ? GEMM_ROWS * widen_stride(gemm_block_depth(GEMM_COLS)) * sizeof(float) : 0;
}

/// Adds rows of V, as they lie in memory, to one row.
static void add_rows(size_t keys, size_t dim, const GEMM_ELEMENT *restrict p,
                     const GEMM_ELEMENT *restrict v, size_t v_stride, float *restrict o) {
    for (size_t first = 0; first < dim; first += 4 * GEMM_COLS) {
        const size_t width = dim - first < 4 * GEMM_COLS ? dim - first : 4 * GEMM_COLS;
        if (width == 4 * GEMM_COLS) {
            float sum[4 * GEMM_COLS] = {0.0f};
            for (size_t j = 0; j < keys; j++) {
                const float weight = GEMM_LOAD(p[j]);
#pragma omp simd
                for (size_t i = 0; i < 4 * GEMM_COLS; i++) {
                    sum[i] += weight * GEMM_LOAD(v[j * v_stride + first + i]);
                }
            }
            for (size_t i = 0; i < 4 * GEMM_COLS; i++) {
                o[first + i] += sum[i];
            }
            continue;
        }
        for (size_t j = 0; j < keys; j++) {
            const float weight = GEMM_LOAD(p[j]);
#pragma omp simd
            for (size_t i = 0; i < width; i++) {
                o[first + i] += weight * GEMM_LOAD(v[j * v_stride + first + i]);
            }
        }
    }
}

/// Adds the keys that all of a block's rows see, panel by panel.
static void add_shared(const struct mha_pv_args *args, size_t rows, struct mha_span keys,
                       const GEMM_ELEMENT *weights, float *room, float *o) {
    const size_t p_stride =
        GEMM_NARROW ? widen_stride(gemm_block_depth(GEMM_COLS)) : args->p_stride;
    while (keys.begin < keys.end) {
        const size_t first = keys.begin / gemm_block_depth(GEMM_COLS) * gemm_block_depth(GEMM_COLS);
        const size_t thick = gemm_depth_block(args->seq_kv - first, GEMM_COLS);
        const size_t end = keys.end < first + thick ? keys.end : first + thick;
        const float *block =
            (const float *)args->packed + gemm_packed_count(first, args->head_dim, GEMM_COLS);
        const void *p = weights + keys.begin;
        if (GEMM_NARROW) {
            gemm_autovec_widen(rows, end - keys.begin, weights + keys.begin, args->p_stride, room,
                               p_stride);
            p = room;
        }
        for (size_t col = 0; col < args->head_dim; col += GEMM_COLS) {
            const size_t left = args->head_dim - col;
            gemm_rows_by_panel(rows, left < GEMM_COLS ? left : GEMM_COLS, end - keys.begin, p,
                               p_stride, block + col * thick + (keys.begin - first) * GEMM_COLS,
                               true, o + col, args->o_stride);
        }
        keys.begin = end;
    }
}

static void run_head(const struct mha_pv_args *args, const GEMM_ELEMENT *p, float *room, float *o) {
    const GEMM_ELEMENT *v = args->v;
    for (size_t row = 0; row < args->rows; row += GEMM_ROWS) {
        const size_t rows = args->rows - row < GEMM_ROWS ? args->rows - row : GEMM_ROWS;
        // Spans of later rows begin and end later.
        const struct mha_span top = mha_row_span(&args->mask, args->first_row + row);
        struct mha_span shared = mha_row_span(&args->mask, args->first_row + row + rows - 1);
        shared.end = top.end;
        if (!args->packed || shared.end < shared.begin) {
            shared.end = shared.begin;
        }
        for (size_t r = row; r < row + rows; r++) {
            for (size_t i = 0; i < args->head_dim; i++) {
                o[r * args->o_stride + i] = 0.0f;
            }
        }
        add_shared(args, rows, shared, p + row * args->p_stride, room, o + row * args->o_stride);
        for (size_t r = row; r < row + rows; r++) {
            const struct mha_span own = mha_row_span(&args->mask, args->first_row + r);
            const size_t before = own.end < shared.begin ? own.end : shared.begin;
            const size_t after = own.begin > shared.end ? own.begin : shared.end;
            const GEMM_ELEMENT *weights = p + r * args->p_stride;
            if (own.begin < before) {
                add_rows(before - own.begin, args->head_dim, weights + own.begin,
                         v + own.begin * args->v_stride, args->v_stride, o + r * args->o_stride);
            }
            if (after < own.end) {
                add_rows(own.end - after, args->head_dim, weights + after,
                         v + after * args->v_stride, args->v_stride, o + r * args->o_stride);
            }
        }
    }
}

static void run(const struct mha_pv_args *args, void *workspace) {
    for (size_t h = 0; h < args->heads; h++) {
        run_head(args, (const GEMM_ELEMENT *)args->p + h * args->p_head_stride, workspace,
                 args->o + h * args->o_head_stride);
    }
}
