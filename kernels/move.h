/// What concat and split share. Both move one row of head_dim elements per head and token between
/// two tensors; they differ in whose heads stand side by side only. The kernels bring the mover of
/// a block of rows.
#ifndef MHA_MOVE_H
#define MHA_MOVE_H

#include <stddef.h>

#include "mha_kernel.h"

/// y[h * y_head_stride + t * y_stride + i] = x[h * x_head_stride + t * x_stride + i] for h < heads,
/// t < tokens, i < cols.
struct move_heads {
    size_t heads;
    size_t tokens;
    size_t cols;
    const float *x;
    size_t x_head_stride;
    size_t x_stride;
    float *y;
    size_t y_head_stride;
    size_t y_stride;
};

/// Tokens that are moved of one head before the next head's turn. Few enough that the output's
/// pages stay in the first-level TLB while the heads fill in its rows, enough that the contiguous
/// side is walked in runs of some KiB; of 1, 4, 8, 16 and all, 8 and 16 were best from L1 to DRAM.
enum { MOVE_BLOCK_TOKENS = 8 };

/// Copies `rows` rows of `cols` elements. `next` is a block of x of the same size, the one that
/// comes after this one where there is one, for those that prefetch.
typedef void move_rows_fn(size_t rows, size_t cols, const float *x, size_t x_stride, float *y,
                          size_t y_stride, const float *next);

static inline struct move_heads move_heads_of_concat(const struct mha_concat_args *args) {
    return (struct move_heads){
        .heads = args->heads,
        .tokens = args->tokens,
        .cols = args->head_dim,
        .x = args->x,
        .x_head_stride = args->x_head_stride,
        .x_stride = args->x_stride,
        .y = args->y,
        .y_head_stride = args->head_dim,
        .y_stride = args->y_stride,
    };
}

static inline struct move_heads move_heads_of_split(const struct mha_split_args *args) {
    return (struct move_heads){
        .heads = args->heads,
        .tokens = args->tokens,
        .cols = args->head_dim,
        .x = args->x,
        .x_head_stride = args->head_dim,
        .x_stride = args->x_stride,
        .y = args->y,
        .y_head_stride = args->y_head_stride,
        .y_stride = args->y_stride,
    };
}

/// Copies one row of `n` elements, and fetches those of `next` that stand opposite.
typedef void move_row_fn(size_t n, const float *x, float *y, const float *next);

/// Streams that a long row is cut into, and elements of a stream's turn. A core keeps more of DRAM
/// busy with several streams than with one: 2 to 8 copied 9 to 17 % faster, as fast from L3 and 2 %
/// slower in L1 and L2 (Emerald Rapids); 16 were slower, and 8 that lie a power of 2 apart would be
/// all that a set of an 8-way cache holds.
enum { MOVE_STREAMS = 4, MOVE_TURN = 128 };

/// Runs `move_row` over a long row, by turns at four places. Each fetches its next turn.
__attribute__((always_inline)) static inline void move_streams(size_t n, const float *x, float *y,
                                                               move_row_fn *move_row) {
    const size_t part = n / (MOVE_STREAMS * (size_t)MOVE_TURN) * MOVE_TURN;
    for (size_t i = 0; i < part; i += MOVE_TURN) {
        const size_t ahead = i + MOVE_TURN < part ? MOVE_TURN : 0;
        for (size_t s = 0; s < MOVE_STREAMS; s++) {
            const size_t at = s * part + i;
            move_row(MOVE_TURN, x + at, y + at, x + at + ahead);
        }
    }
    const size_t done = MOVE_STREAMS * part;
    move_row(n - done, x + done, y + done, x + done);
}

/// Runs `move_rows` over all heads and tokens. Always inlined, so that move_rows is no call either.
__attribute__((always_inline)) static inline void move_heads(const struct move_heads *m,
                                                             move_rows_fn *move_rows) {
    for (size_t t = 0; t < m->tokens; t += MOVE_BLOCK_TOKENS) {
        const size_t left = m->tokens - t;
        const size_t rows = left < MOVE_BLOCK_TOKENS ? left : MOVE_BLOCK_TOKENS;
        const float *x = m->x + t * m->x_stride;
        float *y = m->y + t * m->y_stride;
        for (size_t h = 0; h < m->heads; h++) {
            // After the last head come the next tokens of the first one. A block without a
            // successor of its own size has itself for one.
            const float *next = x;
            if (h + 1 < m->heads) {
                next = x + m->x_head_stride;
            } else if (left >= 2 * (size_t)MOVE_BLOCK_TOKENS) {
                next = m->x + (t + rows) * m->x_stride;
            }
            move_rows(rows, m->cols, x, m->x_stride, y, m->y_stride, next);
            // Not past the last head: its successor would be no address within the tensor.
            if (h + 1 < m->heads) {
                x += m->x_head_stride;
                y += m->y_head_stride;
            }
        }
    }
}

#endif
