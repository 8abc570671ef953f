/// qk over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define QK_TILE, QK_ROWS, QK_MR, QK_NR, QK_PACK_TRANSPOSED, QK_DOTS, QK_WIDEN
/// and QK_TYPE, the type of Q's and K's elements. Where a panel and a block of Q hold something
/// else than widened elements, they define QK_DEPTH(head_dim), the floats of a row, and QK_PREPARE,
/// which makes rows of it in place of QK_WIDEN.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// QK_NR keys (Goto and van de Geijn 2008); each query head then is one packed product S = Q *
/// (scale * K)^T. With one query per head (decoding) packing would cost more than the product:
/// scores are dot products with the rows of K where they are, times scale. bf16 and f16 are widened
/// to floats on the way: QK_NR keys at a time before they are packed, a block of Q before its
/// tiles, and where K is taken as it is, in registers.
///
/// Error: scale * k is rounded once and the sum is one chain of head_dim fused multiply-adds, so
/// |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1); where
/// scale * k falls below the smallest normal, |q_i| * 2^-126 more; a dot
/// product sums in lanes first and rounds once more for scale, within the same bound. scale * k
/// keeps the class of k: NaN and infinities come through as in the formula. Widening is exact.
///
/// Tail: rows by tiles with fewer rows, keys by masked stores, head_dim by masked loads in the
/// packer; nothing past the arrays is read or written.
#include <stddef.h>

#include "mha_kernel.h"

#ifndef QK_DEPTH
#define QK_DEPTH(head_dim) (head_dim)
#define QK_PREPARE QK_WIDEN
#endif

static size_t packed_bytes(const struct mha_shape *shape) {
    const size_t depth = QK_DEPTH(shape->head_dim);
    const size_t panels = gemm_packed_count(depth, shape->seq_kv, QK_NR);
    // Behind the panels is the room in which keys are widened.
    const size_t room = QK_TYPE == WIDEN_F32 ? 0 : QK_NR * widen_stride(depth);
    return shape->seq_q == 1 ? 0 : (panels + room) * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    float *panels = packed;
    if (QK_TYPE == WIDEN_F32) {
        QK_PACK_TRANSPOSED(args->k, args->k_stride, args->seq_kv, args->head_dim, args->scale,
                           panels);
        return;
    }
    const size_t depth = QK_DEPTH(args->head_dim);
    gemm_pack_transposed_narrow(QK_PREPARE, QK_PACK_TRANSPOSED, QK_NR, QK_TYPE, args->k,
                                args->k_stride, args->seq_kv, args->head_dim, depth, args->scale,
                                panels, panels + gemm_packed_count(depth, args->seq_kv, QK_NR));
}

/// Room for the widened rows of a block, or the one row of each head that decoding has.
static size_t workspace_bytes(const struct mha_shape *shape) {
    const size_t depth = QK_DEPTH(shape->head_dim);
    const size_t count = shape->seq_q == 1
                             ? shape->heads / shape->kv_heads * widen_stride(shape->head_dim)
                             : gemm_row_block(QK_MR, depth) * widen_stride(depth);
    return QK_TYPE == WIDEN_F32 ? 0 : count * sizeof(float);
}

/// Gets the address of row `row` of head `head` of Q.
static inline const void *query(const struct mha_qk_args *args, size_t head, size_t row) {
    return widen_at(QK_TYPE, args->q, head * args->q_head_stride + row * args->q_stride);
}

/// Scores straight from K: heads that share it take a block of keys before the next
/// one is touched.
static void run_direct(const struct mha_qk_args *args, float *room) {
    const size_t most = GEMM_PANEL_GROUP_BYTES / widen_bytes(QK_TYPE) / args->head_dim;
    const size_t shared = most > 0 ? most : 1;
    const size_t block = args->heads > 1 ? shared : args->seq_kv;
    for (size_t first = 0; first < args->seq_kv; first += block) {
        const size_t keys = args->seq_kv - first < block ? args->seq_kv - first : block;
        for (size_t h = 0; h < args->heads; h++) {
            for (size_t r = 0; r < args->rows; r++) {
                const float *q = query(args, h, r);
                if (QK_TYPE != WIDEN_F32) {
                    // Without packing an item has one row a head, which stays widened.
                    float *own = room + h * widen_stride(args->head_dim);
                    if (first == 0) {
                        QK_WIDEN(QK_TYPE, 1, args->head_dim, q, 0, own, 0);
                    }
                    q = own;
                }
                QK_DOTS(QK_TYPE, keys, args->head_dim, q,
                        widen_at(QK_TYPE, args->k, first * args->k_stride), args->k_stride,
                        args->scale, args->heads == 1,
                        args->s + h * args->s_head_stride + r * args->s_stride + first);
            }
        }
    }
}

static void run(const struct mha_qk_args *args, void *workspace) {
    if (!args->packed) {
        run_direct(args, workspace);
        return;
    }
    const size_t depth = QK_DEPTH(args->head_dim);
    const size_t block = QK_TYPE == WIDEN_F32 ? args->rows : gemm_row_block(QK_MR, depth);
    const size_t stride = QK_TYPE == WIDEN_F32 ? args->q_stride : widen_stride(depth);
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t row = 0; row < args->rows; row += block) {
            const size_t rows = args->rows - row < block ? args->rows - row : block;
            const float *q = query(args, h, row);
            if (QK_TYPE != WIDEN_F32) {
                QK_PREPARE(QK_TYPE, rows, args->head_dim, q, args->q_stride, workspace, stride);
                q = workspace;
            }
            gemm_packed(QK_TILE, QK_ROWS, QK_MR, QK_NR, rows, args->seq_kv, depth, q, stride,
                        args->packed, false,
                        args->s + h * args->s_head_stride + row * args->s_stride, args->s_stride);
        }
    }
}
