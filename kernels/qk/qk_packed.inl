/// qk over the packed GEMM of one ISA: packed_bytes(), pack() and run() of the hand-written
/// variants. Includers define QK_TILE, QK_ROWS, QK_MR, QK_NR, QK_PACK_TRANSPOSED, QK_WIDEN and
/// QK_TYPE, the type of Q's and K's elements, and include one of dots_<isa>.h. Where a panel and a
/// block of Q hold something else than widened elements, they define QK_DEPTH(head_dim), the floats
/// of a row, and QK_PREPARE, which makes rows of it in place of QK_WIDEN; where QK_TILE stores past
/// the caches, QK_FENCE.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// QK_NR keys (Goto and van de Geijn 2008); each query head then is one packed product S = Q *
/// (scale * K)^T. With one query per head (decoding) packing would cost more than the product:
/// scores are dot products with the rows of K where they are, times scale. bf16 and f16 are widened
/// to floats on the way: QK_NR keys at a time before they are packed, a block of Q before its
/// tiles, and where K is taken as it is, in registers. Where GEMM_AHEAD_BYTES lets it, the next
/// group's K and Q are fetched meanwhile: packing waits for the first, tiles for the second. So are
/// a tile's own lines of S where these are to pass the caches and rows do not begin one: stores
/// would wait for them, and the tile that follows for the stores. Where a cache has them, fetching
/// took 1 to 2 % longer (Zen 4).
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

#define DOTS_TYPE QK_TYPE
#include "dots.inl"

#ifndef QK_DEPTH
#define QK_DEPTH(head_dim) (head_dim)
#define QK_PREPARE QK_WIDEN
#endif

#ifdef QK_FENCE
#define QK_STREAMS true
#else
#define QK_STREAMS false
#define QK_FENCE() ((void)0)
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

/// How far ahead keys are fetched where K is read as it is. It takes 7 to 30 % less than half as
/// far for a query to a head; twice as far took up to 15 % longer for four (Zen 4).
#define QK_AHEAD_BYTES ((size_t)8192)

/// Bytes of K of a head that are taken to come from memory.
#define QK_MEMORY_BYTES ((size_t)2097152)

/// Scores straight from K: heads that share it take a few keys before the next ones are touched.
static void run_direct(const struct mha_qk_args *args, float *room) {
    const size_t depth = args->head_dim, queries = args->heads;
    const size_t bytes = args->seq_kv * depth * widen_bytes(QK_TYPE);
    const bool far = bytes > FEW_NEAR_BYTES;
    const bool from_memory = DOTS_FETCH_TWICE && QK_TYPE == WIDEN_F32 && bytes > QK_MEMORY_BYTES;
    const size_t keys_ahead = QK_AHEAD_BYTES / (depth * widen_bytes(QK_TYPE));
    const size_t distance = keys_ahead > DOTS ? keys_ahead : DOTS;
    // Without packing an item has one row a head; widened, all of them stay.
    for (size_t h = 0; QK_TYPE != WIDEN_F32 && h < queries; h++) {
        QK_WIDEN(QK_TYPE, 1, depth, query(args, h, 0), 0, room + h * widen_stride(depth), 0);
    }
    for (size_t at = 0, count = 0; at < args->seq_kv; at += count) {
        count = dots_count(args->seq_kv - at);
        const void *k = widen_at(QK_TYPE, args->k, at * args->k_stride);
        const bool fetch = (far || queries > 1) && args->seq_kv - at >= distance + count;
        const void *ahead = fetch ? widen_at(QK_TYPE, k, distance * args->k_stride) : NULL;
        for (size_t h = 0, some = 0; h < queries; h += some) {
            some = few_together(queries - h);
            const float *q[FEW_TOGETHER];
            for (size_t i = 0; i < some; i++) {
                q[i] = QK_TYPE == WIDEN_F32 ? query(args, h + i, 0)
                                            : room + (h + i) * widen_stride(depth);
            }
            dots(some, q, count, k, args->k_stride, h == 0 ? ahead : NULL, from_memory, depth,
                 args->scale, args->s + h * args->s_head_stride + at, args->s_head_stride);
        }
    }
}

/// Number of pieces that are fetched along the way.
enum { QK_PIECES = GEMM_AHEAD_BYTES > 0 ? 2 : 0 };

/// Gets the rows of K and of Q that stand opposite the item's in the group that follows.
static void pieces_of(const struct mha_qk_args *args, struct gemm_ahead ahead[2]) {
    const size_t depth = args->head_dim, keys = args->seq_kv, rows = args->rows;
    const size_t tiles = args->heads * gemm_tile_count(QK_MR, QK_NR, rows, keys);
    ahead[0] = gemm_ahead_opposite(QK_TYPE, args->first_row, rows, keys, depth, args->k,
                                   args->k_stride, tiles);
    const bool fetch = ahead[0].at < ahead[0].end && args->q_stride == depth;
    ahead[1] = gemm_ahead_of(QK_TYPE, fetch ? args->heads * rows * depth : 0, args->q,
                             args->heads * args->q_head_stride, tiles);
}

static void run(const struct mha_qk_args *args, void *workspace) {
    if (!args->packed) {
        run_direct(args, workspace);
        return;
    }
    const size_t depth = QK_DEPTH(args->head_dim);
    const size_t block = QK_TYPE == WIDEN_F32 ? args->rows : gemm_row_block(QK_MR, depth);
    const size_t stride = QK_TYPE == WIDEN_F32 ? args->q_stride : widen_stride(depth);
    struct gemm_ahead ahead[2];
    pieces_of(args, ahead);
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t row = 0; row < args->rows; row += block) {
            const size_t rows = args->rows - row < block ? args->rows - row : block;
            const float *q = query(args, h, row);
            if (QK_TYPE != WIDEN_F32) {
                QK_PREPARE(QK_TYPE, rows, args->head_dim, q, args->q_stride, workspace, stride);
                q = workspace;
            }
            float *const s = args->s + h * args->s_head_stride + row * args->s_stride;
            gemm_packed(QK_TILE, QK_ROWS, QK_NR, gemm_row_block(QK_MR, depth), rows, args->seq_kv,
                        depth, q, stride, args->packed, false, s, args->s_stride,
                        QK_STREAMS && !gemm_on_lines(s, args->s_stride), QK_PIECES, ahead);
        }
    }
    QK_FENCE();
}
