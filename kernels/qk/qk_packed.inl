/// qk over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define QK_TILE, QK_MR, QK_NR and QK_PACK_TRANSPOSED.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// QK_NR keys (Goto and van de Geijn 2008); each query head then is one packed product S = Q *
/// (scale * K)^T.
///
/// Error: scale * k is rounded once and the sum is one chain of head_dim fused multiply-adds, so
/// |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1); where
/// scale * k falls below the smallest normal, |q_i| * 2^-126 more. scale * k keeps the class of k:
/// NaN and infinities come through as in the formula.
///
/// Tail: rows by tiles with fewer rows, keys by masked stores, head_dim by masked loads in the
/// packer; nothing past the arrays is read or written.
#include <stddef.h>

#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return gemm_packed_count(shape->head_dim, shape->seq_kv, QK_NR) * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    QK_PACK_TRANSPOSED(args->k, args->k_stride, args->seq_kv, args->head_dim, args->scale, packed);
}

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    // One query per head is decoding: the heads of the group are then the rows of one product.
    const int decode = args->rows == 1;
    const size_t products = decode ? 1 : args->heads;
    const size_t rows = decode ? args->heads : args->rows;
    const size_t q_stride = decode ? args->q_head_stride : args->q_stride;
    const size_t s_stride = decode ? args->s_head_stride : args->s_stride;
    for (size_t h = 0; h < products; h++) {
        gemm_packed(QK_TILE, QK_MR, QK_NR, rows, args->seq_kv, args->head_dim,
                    (const float *)args->q + h * args->q_head_stride, q_stride, args->packed,
                    args->s + h * args->s_head_stride, s_stride);
    }
}
