/// The projections over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the
/// hand-written variants of both ops. Includers define PROJ_TILE, PROJ_ROWS, PROJ_MR, PROJ_NR and
/// PROJ_PACK.
///
/// Algorithm: a piece of w is packed once into panels of PROJ_NR columns, cut into blocks of depth
/// (Goto and van de Geijn 2008); a product then is computed block by block, each added to y.
///
/// Error: every element is one chain of depth fused multiply-adds, so |error| <= gamma_depth *
/// sum_i |x_i w_ij| (Higham 2002, section 3.1).
///
/// Tail: rows by tiles with fewer rows, columns by masked loads and stores; nothing past the arrays
/// is read or written.
#include <stddef.h>

#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return gemm_packed_count(shape->heads * shape->head_dim, MHA_PROJ_COLS, PROJ_NR) *
           sizeof(float);
}

static void pack(const struct mha_proj_args *args, void *packed) {
    gemm_pack_deep(PROJ_PACK, PROJ_NR, args->w, args->w_stride, args->cols, args->depth, packed);
}

static void run(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    gemm_packed_deep(PROJ_TILE, PROJ_ROWS, PROJ_MR, PROJ_NR, args->rows, args->cols, args->depth,
                     args->x, args->x_stride, args->packed, args->y, args->y_stride);
}
