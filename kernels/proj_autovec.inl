/// The projections in C that compilers vectorise well: packed_bytes(), pack() and run() of both
/// ops, the same source for every ISA level. Includers define the block, GEMM_ROWS by GEMM_COLS.
///
/// Algorithm: a piece of w is packed once into panels, cut into blocks of depth; each block's
/// product is added to y. Blocks and tails: gemm_autovec.inl.
///
/// Error: every element is a sum of depth products, some of them added up in blocks first: |error|
/// <= gamma_depth * sum_i |x_i w_ij| (Higham 2002, section 3.1).
#include <stddef.h>

#include "gemm_autovec.inl"
#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return gemm_packed_count(shape->heads * shape->head_dim, MHA_PROJ_COLS, GEMM_COLS) *
           sizeof(float);
}

static void pack(const struct mha_proj_args *args, void *packed) {
    gemm_pack_deep(gemm_autovec_pack, GEMM_COLS, args->w, args->w_stride, args->cols, args->depth,
                   packed);
}

static void run(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    for (size_t p = 0; p < args->depth; p += gemm_block_depth(GEMM_COLS)) {
        const size_t depth = gemm_depth_block(args->depth - p, GEMM_COLS);
        const float *block =
            (const float *)args->packed + gemm_packed_count(p, args->cols, GEMM_COLS);
        for (size_t first = 0; first < args->cols; first += GEMM_COLS) {
            const size_t left = args->cols - first;
            gemm_rows_by_panel(args->rows, left < GEMM_COLS ? left : GEMM_COLS, depth,
                               (const float *)args->x + p, args->x_stride, block + first * depth,
                               p > 0, args->y + first, args->y_stride);
        }
    }
}
