/// qk over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define QK_TILE, QK_MR, QK_NR, QK_PACK_TRANSPOSED and
/// QK_DOTS.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// QK_NR keys (Goto and van de Geijn 2008); each query head then is one packed product S = Q *
/// (scale * K)^T. With one query per head (decoding) packing would cost more than the product:
/// scores are dot products with the rows of K where they are, times scale.
///
/// Error: scale * k is rounded once and the sum is one chain of head_dim fused multiply-adds, so
/// |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1); where
/// scale * k falls below the smallest normal, |q_i| * 2^-126 more; a dot
/// product sums in lanes first and rounds once more for scale, within the same bound. scale * k
/// keeps the class of k: NaN and infinities come through as in the formula.
///
/// Tail: rows by tiles with fewer rows, keys by masked stores, head_dim by masked loads in the
/// packer; nothing past the arrays is read or written.
#include <stddef.h>

#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return shape->seq_q == 1
               ? 0
               : gemm_packed_count(shape->head_dim, shape->seq_kv, QK_NR) * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    QK_PACK_TRANSPOSED(args->k, args->k_stride, args->seq_kv, args->head_dim, args->scale, packed);
}

/// Scores straight from K: heads that share it take a block of keys before the next
/// one is touched.
static void run_direct(const struct mha_qk_args *args) {
    const size_t most = GEMM_PANEL_GROUP_BYTES / sizeof(float) / args->head_dim;
    const size_t shared = most > 0 ? most : 1;
    const size_t block = args->heads > 1 ? shared : args->seq_kv;
    for (size_t first = 0; first < args->seq_kv; first += block) {
        const size_t keys = args->seq_kv - first < block ? args->seq_kv - first : block;
        for (size_t h = 0; h < args->heads; h++) {
            for (size_t r = 0; r < args->rows; r++) {
                QK_DOTS(keys, args->head_dim,
                        (const float *)args->q + h * args->q_head_stride + r * args->q_stride,
                        (const float *)args->k + first * args->k_stride, args->k_stride,
                        args->scale, args->heads == 1,
                        args->s + h * args->s_head_stride + r * args->s_stride + first);
            }
        }
    }
}

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    if (!args->packed) {
        run_direct(args);
        return;
    }
    for (size_t h = 0; h < args->heads; h++) {
        gemm_packed(QK_TILE, QK_MR, QK_NR, args->rows, args->seq_kv, args->head_dim,
                    (const float *)args->q + h * args->q_head_stride, args->q_stride, args->packed,
                    false, args->s + h * args->s_head_stride, args->s_stride);
    }
}
