/// What concat and split share. Both move one row of head_dim elements per head and token between
/// two tensors; they differ in whose heads stand side by side only. The kernels bring the movers of
/// a row, and copies are made of these as well.
#ifndef MHA_MOVE_H
#define MHA_MOVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fetch.h"
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

/// The order in which rows are moved.
struct move_order {
    size_t tokens;               ///< Of a block: all heads' rows of these before the next tokens.
    size_t run_bytes;            ///< Of neighbouring heads' rows that pass before the next token's.
    enum fetch_into fetch_into;  ///< Where rows to come are fetched by what goes past the caches.
};

/// Tokens of a block: few enough that the output's pages stay in the first-level TLB while the
/// heads fill in its rows, enough that the contiguous side is walked in runs of some KiB; of 1, 4,
/// 8, 16 and all, 8 and 16 were best from L1 to DRAM, where move_order_by_heads() does not say
/// else.
enum { MOVE_TOKENS = 8, MOVE_TOKENS_SIDE_BY_SIDE = 32 };

/// Bytes of a page, and of rows that bear to lie whole pages apart: heads of 128 did.
enum { MOVE_PAGE_BYTES = 4096, MOVE_WIDE_BYTES = 512 };

/// Outputs that a cache holds, head by head.
static const struct move_order MOVE_NEAR = {.tokens = MOVE_TOKENS};

/// Gets the order for outputs that a cache holds where a head may pass with all of its tokens: a
/// stream on one side, one stride on the other. Beside blocks of tokens, 8 to 96 heads of 64 and
/// 128 took 2 to 20 % less time to be put side by side so, and 17 % less to 4 % more to be taken
/// apart (AVX-512, Zen 5); but heads of 64 whose tokens lie whole pages apart took up to 2.5 times
/// as long, and 5 % less to 7 % more.
static inline struct move_order move_order_by_heads(const struct move_heads *m) {
    const bool pages_apart = m->x_stride * sizeof(float) % MOVE_PAGE_BYTES == 0 ||
                             m->y_stride * sizeof(float) % MOVE_PAGE_BYTES == 0;
    const bool blocks = pages_apart && m->cols * sizeof(float) < MOVE_WIDE_BYTES;
    return (struct move_order){.tokens = blocks ? MOVE_TOKENS : m->tokens};
}

/// Past the caches, for outputs whose heads stand apart.
static const struct move_order MOVE_APART = {.tokens = MOVE_TOKENS, .fetch_into = FETCH_INTO_L1};

/// Past the caches, for outputs whose heads stand side by side: memory takes a page of neighbouring
/// lines far faster than the rows of single heads, which lie a token apart. On Zen 4, 96 heads of
/// 128 took 33 to 39 % less time so than in the order of MOVE_APART, and 2 to 4 % less than in
/// blocks of 16 tokens; in a loop of nothing else blocks of 4 and 8 and runs of half a page and of
/// two took longer. A block is more than L1 holds: what comes next is fetched into L2.
static const struct move_order MOVE_SIDE_BY_SIDE = {
    .tokens = MOVE_TOKENS_SIDE_BY_SIDE, .run_bytes = MOVE_PAGE_BYTES, .fetch_into = FETCH_INTO_L2};

/// Copies one row of `n` elements.
typedef void move_row_fn(size_t n, const float *x, float *y);

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
            fetch_bytes(FETCH_INTO_L1, MOVE_TURN * sizeof(*x), x + at + ahead);
            move_row(MOVE_TURN, x + at, y + at);
        }
    }
    const size_t done = MOVE_STREAMS * part;
    move_row(n - done, x + done, y + done);
}

/// Elements that are put together in L1, and those of a line.
enum { MOVE_TOGETHER = 2048, MOVE_LINE = FETCH_LINE_BYTES / sizeof(float) };

/// Gets the rows of `cols` elements that fit into `count` elements: at least one, and such as fill
/// whole lines if there are any.
static inline size_t move_rows_within(size_t count, size_t cols) {
    const size_t most = cols > 0 ? count / cols : 1;
    size_t unit = 1;
    while (unit * cols % MOVE_LINE != 0) {
        unit *= 2;
    }
    return most >= unit ? most / unit * unit : most > 0 ? most : 1;
}

/// Copies rows that lie y_stride apart past the caches, and fetches the rows that lie x_stride
/// apart from `next` on. Where they follow each other in y and share lines, they are first put
/// together in L1: a line that is written in parts is read from memory before.
__attribute__((always_inline)) static inline void move_past(
    size_t rows, size_t cols, const float *x, size_t x_stride, float *y, size_t y_stride,
    const enum fetch_into into, const float *next, move_row_fn *near, move_row_fn *past) {
    const bool whole = ((uintptr_t)y | y_stride * sizeof(*y)) % FETCH_LINE_BYTES == 0;
    if (whole || y_stride != cols || cols > MOVE_TOGETHER / 2) {
        for (size_t r = 0; r < rows; r++) {
            fetch_bytes(into, cols * sizeof(*x), next + r * x_stride);
            past(cols, x + r * x_stride, y + r * y_stride);
        }
        return;
    }
    _Alignas(FETCH_LINE_BYTES) float room[MOVE_TOGETHER + MOVE_LINE];
    const size_t most = move_rows_within(MOVE_TOGETHER, cols);
    for (size_t r = 0, some = 0; r < rows; r += some) {
        some = rows - r < most ? rows - r : most;
        float *const to = y + r * y_stride;
        float *const together = room + (uintptr_t)to / sizeof(*to) % MOVE_LINE;
        for (size_t i = 0; i < some; i++) {
            fetch_bytes(into, cols * sizeof(*x), next + (r + i) * x_stride);
            near(cols, x + (r + i) * x_stride, together + i * cols);
        }
        past(some * cols, together, to);
    }
}

/// Moves all heads and tokens, by `past` if that is not NULL: into a cache by `near`, or past the
/// caches. Always inlined, so that neither is a call.
__attribute__((always_inline)) static inline void move_heads(const struct move_heads *m,
                                                             const struct move_order order,
                                                             move_row_fn *near, move_row_fn *past) {
    const bool side_by_side = order.run_bytes > 0;
    const size_t run = move_rows_within(order.run_bytes / sizeof(*m->x), m->cols);
    for (size_t t = 0; t < m->tokens; t += order.tokens) {
        const size_t left = m->tokens - t;
        const size_t tokens = left < order.tokens ? left : order.tokens;
        for (size_t h = 0, heads = 0; h < m->heads; h += heads) {
            const size_t rest = m->heads - h;
            heads = run < rest ? run : rest;
            const float *x = m->x + h * m->x_head_stride + t * m->x_stride;
            float *y = m->y + h * m->y_head_stride + t * m->y_stride;
            // After the last heads come the next tokens of the first ones. A block without a
            // successor of its own size has itself for one.
            const float *next = x;
            if (rest >= 2 * heads) {
                next = x + heads * m->x_head_stride;
            } else if (left >= 2 * order.tokens) {
                next = m->x + (t + tokens) * m->x_stride;
            }
            for (size_t r = 0; r < (side_by_side ? tokens : 1); r++) {
                const size_t rows = side_by_side ? heads : tokens;
                const size_t x_stride = side_by_side ? m->x_head_stride : m->x_stride;
                const size_t y_stride = side_by_side ? m->y_head_stride : m->y_stride;
                const size_t at = r * m->x_stride;
                float *const to = y + r * m->y_stride;
                if (past != NULL) {
                    move_past(rows, m->cols, x + at, x_stride, to, y_stride, order.fetch_into,
                              next + at, near, past);
                    continue;
                }
                for (size_t i = 0; i < rows; i++) {
                    near(m->cols, x + at + i * x_stride, to + i * y_stride);
                }
            }
        }
    }
}

#endif
