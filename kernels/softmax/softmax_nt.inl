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
/// scaled; also when the row is computed in place. Whole cache lines of a row are streamed, those
/// in which the visible part begins or ends too; what a row has of a line that it shares with
/// another is stored plainly. Streaming a row while the exponentials of the next are computed was
/// 2 to 5 % faster (Zen 3, from DRAM; on Zen 5 much faster or slower by the row's length) and
/// needed two buffers kept apart modulo 4096: not worth it.
#include <stdint.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

/// Elements of a cache line, the unit of a streaming store.
enum { LINE = 16 };

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

/// Stores a row, of whose visible elements the exponentials are at e, past the caches. A line
/// stored plainly between streamed ones made them wait: some 140 ns in each row (Zen 5).
static inline void store_row(struct softmax_row row, size_t cols, const float *e,
                             SOFTMAX_VECTOR factor) {
    const struct mha_span span = row.span;
    size_t i = head_of(row.y, cols);
    const size_t last = i + (cols - i) / LINE * LINE;
    part_of(row, e, factor, 0, i, row.y);
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
    part_of(row, e, factor, i, cols - i, row.y + i);
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    for (size_t i = 0; i < args->rows; i++) {
        const struct softmax_row row = softmax_row_at(args, i);
        const struct softmax_row next = softmax_row_at(args, i + 1 < args->rows ? i + 1 : i);
        const size_t n = row.span.end - row.span.begin;
        // As far into a line as the results.
        float *const e = (float *)workspace + (row.span.begin - head_of(row.y, args->cols)) % LINE;
        SOFTMAX_VECTOR factor = SOFTMAX_SET(0.0f);
        if (n > 0) {
            const float *const x = row.x + row.span.begin;
            const SOFTMAX_SUM sum = SOFTMAX_EXPS(softmax_exponent_of(SOFTMAX_LARGEST(x, n)), x, e,
                                                 n, next.x + next.span.begin, NULL);
            SOFTMAX_STORE(e + sum.whole, sum.tail);
            factor = SOFTMAX_SET(softmax_factor(sum.total));
        }
        store_row(row, args->cols, e, factor);
    }
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

/// The exponentials of a row, which may begin amid a line, and the lanes behind them.
static size_t workspace_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + LINE + SOFTMAX_LANES) * sizeof(float);
}
