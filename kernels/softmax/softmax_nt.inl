/// softmax with streaming stores and prefetch of the row to come, over the first two passes of one
/// ISA: for scores that exceed the caches, where a plain store would read the line first, and a
/// row's exponentials would wait for its scores. Includers include softmax_<isa>.h and define
/// SOFTMAX_LANES, SOFTMAX_SUM, SOFTMAX_LARGEST and SOFTMAX_EXPS of it, SOFTMAX_SET,
/// SOFTMAX_VECTOR, SOFTMAX_STORE, and
///
///   scale(e, y, n, factor)        y[i] = e[i] * factor for i < n
///   stream_scaled(e, y, factor)   the same of a line, past the caches
///   stream_zeros(y)               a line of zeros, past the caches
///
/// Algorithm: a row's exponentials stand in the workspace, which stays in the cache, until they are
/// scaled; also when the row is computed in place. Whole cache lines are streamed, those in which
/// the visible part begins or ends and those that two rows share too; a line of which others own a
/// part is stored plainly. Streaming a row while the exponentials of the next are computed was 2 to
/// 5 % faster (Zen 3, from DRAM; on Zen 5 much faster or slower by the row's length) and needed two
/// buffers kept apart modulo 4096: not worth it.
#include <stdint.h>

#include "fetch.h"
#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

/// Elements of a cache line, the unit of a streaming store.
enum { LINE = 16 };

/// Longest rows whose maximum is taken before the row ahead of them is stored: its stores then wait
/// for memory while the next exponentials are computed, and nothing waits for a reduction. 128 to
/// 1024 columns took 5 to 21 % less time so, 2048 and 4096 6 to 13 % more (Zen 4).
enum { EARLY_COLS = 1024 };

/// Most rows between what is computed and what is fetched. A row of 64 columns is fetched as far as
/// the one that is computed is visible, which under a causal mask is less by the rows between.
enum { SOON_ROWS = 4, FAR_ROWS = 16 };

/// Elements of y[0..n) before its first whole line; n when it holds none.
static inline size_t head_of(const float *y, size_t n) {
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % LINE;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    return n < head + LINE || (uintptr_t)y % sizeof(float) != 0 ? n : head;
}

/// Makes elements [i, i + n) of a row: e * factor where it is visible, else zeros, whatever the
/// factor is. Of nothing it calls nothing: memset of no bytes, twice a row, with the vectors that a
/// call may change, was 3 to 12 % of the time, by clang 19 up to 25 % (Zen 4).
static inline void part_of(struct softmax_row row, const float *e, SOFTMAX_VECTOR factor, size_t i,
                           size_t n, float *y) {
    if (n == 0) {
        return;
    }
    const struct mha_span span = row.span;
    const size_t begin = span.begin > i ? span.begin : i;
    const size_t end = span.end < i + n ? span.end : i + n;
    memset(y, 0, n * sizeof(*y));
    if (begin < end) {
        scale(e + (begin - span.begin), y + (begin - i), end - begin, factor);
    }
}

/// Stores a line that holds both visible elements and others.
static inline void stream_part(struct softmax_row row, const float *e, SOFTMAX_VECTOR factor,
                               size_t i) {
    float line[LINE];
    part_of(row, e, factor, i, LINE, line);
    stream_scaled(line, row.y + i, SOFTMAX_SET(1.0f));
}

/// What a row has of a line that the next one completes.
struct shared {
    size_t count;  ///< Elements, 0 if there is no such line.
    float line[LINE];
};

/// Stores a row, of whose visible elements the exponentials are at e, past the caches: with the
/// line that the row before has shared, and without the one that it shares itself if `joined` with
/// the next. A line stored plainly between streamed ones made them wait: some 140 ns in each row
/// (Zen 5).
static inline void store_row(struct softmax_row row, size_t cols, const float *e,
                             SOFTMAX_VECTOR factor, bool joined, struct shared *shared) {
    const struct mha_span span = row.span;
    size_t i = head_of(row.y, cols);
    const size_t last = i + (cols - i) / LINE * LINE;
    if (shared->count > 0) {
        part_of(row, e, factor, 0, i, shared->line + shared->count);
        stream_scaled(shared->line, row.y - shared->count, SOFTMAX_SET(1.0f));
    } else {
        part_of(row, e, factor, 0, i, row.y);
    }
    for (; i < last && i + LINE <= span.begin; i += LINE) {
        stream_zeros(row.y + i);
    }
    if (i < last && i < span.begin) {
        stream_part(row, e, factor, i);
        i += LINE;
    }
    for (; i < last && i + LINE <= span.end; i += LINE) {
        stream_scaled(e + (i - span.begin), row.y + i, factor);
    }
    if (i < last && i < span.end) {
        stream_part(row, e, factor, i);
        i += LINE;
    }
    for (; i < last; i += LINE) {
        stream_zeros(row.y + i);
    }
    shared->count = joined ? cols - i : 0;
    part_of(row, e, factor, i, cols - i, joined ? shared->line : row.y + i);
}

/// Gets the largest visible score of a row; -inf when there is none.
static inline float largest_of(struct softmax_row row) {
    return SOFTMAX_LARGEST(row.x + row.span.begin, row.span.end - row.span.begin);
}

/// Gets row i, or one without visible scores behind the last.
static inline struct softmax_row row_or_none(const struct mha_softmax_args *args, size_t i) {
    if (i < args->rows) {
        return softmax_row_at(args, i);
    }
    return (struct softmax_row){.x = args->x, .y = args->y};
}

/// Gets the rows that `bytes` hold, at least one and at most `most`.
static inline size_t rows_within(size_t bytes, size_t row_bytes, size_t most) {
    const size_t rows = row_bytes > 0 ? bytes / row_bytes : most;
    return rows > most ? most : rows > 0 ? rows : 1;
}

/// Fetches the visible part of row i into L2, if there is such a row. Where a mask hides the end of
/// each, no hardware prefetcher sees the next one coming: causal rows from memory took 9 to 32 %
/// less time so. It follows whole rows, which took 2 to 7 % more, and long parts of them (Zen 4).
/// Inlined early, see fetch_lines().
__attribute__((always_inline)) static inline void fetch_visible(const struct mha_softmax_args *args,
                                                                size_t i) {
    if (i < args->rows) {
        const struct softmax_row row = softmax_row_at(args, i);
        const size_t n = row.span.end - row.span.begin;
        fetch_bytes(FETCH_INTO_L2, n * sizeof(*row.x), row.x + row.span.begin);
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    const size_t row_bytes = args->cols * sizeof(*args->y);
    const size_t soon = rows_within(FETCH_SOON_BYTES, row_bytes, SOON_ROWS);
    const size_t far = rows_within(FETCH_FAR_BYTES, row_bytes, FAR_ROWS) + 1;
    const bool early = args->cols <= EARLY_COLS;
    // Rows that lie one behind the other, each of which holds a whole line.
    const bool dense = args->y_stride == args->cols && args->cols >= (size_t)2 * LINE &&
                       (uintptr_t)args->y % sizeof(*args->y) == 0;
    struct shared shared = {0};
    struct softmax_row row = row_or_none(args, 0);
    float largest = largest_of(row);
    for (size_t i = 0; i < args->rows; i++) {
        const struct softmax_row next = row_or_none(args, i + 1);
        const struct softmax_row after =
            i + soon < args->rows ? softmax_row_at(args, i + soon) : next;
        const size_t n = row.span.end - row.span.begin;
        // As far into a line as the results.
        float *const e = (float *)workspace + (row.span.begin - head_of(row.y, args->cols)) % LINE;
        float total = 0.0f;
        if (n > 0) {
            const SOFTMAX_SUM sum =
                SOFTMAX_EXPS(softmax_exponent_of(largest), row.x + row.span.begin, e, n,
                             after.x + after.span.begin, NULL);
            SOFTMAX_STORE(e + sum.whole, sum.tail);
            total = sum.total;
        }
        if (early) {
            largest = largest_of(next);
        }
        store_row(row, args->cols, e, SOFTMAX_SET(n > 0 ? softmax_factor(total) : 0.0f),
                  dense && i + 1 < args->rows, &shared);
        if (!early) {
            largest = largest_of(next);
        }
        if (n < args->cols && row_bytes <= FETCH_FAR_BYTES) {
            fetch_visible(args, i + far);
        }
        row = next;
    }
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

/// The exponentials of a row, which may begin amid a line, and the lanes behind them.
static size_t workspace_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + LINE + SOFTMAX_LANES) * sizeof(float);
}
