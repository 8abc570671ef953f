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
/// scaled; also when the row is computed in place. Whole cache lines of a row are streamed; its
/// ends, and rows that hold no whole line, are stored plainly. Streaming a row while the
/// exponentials of the next are computed was 2 to 5 % faster (Zen 3, from DRAM) and needed two
/// buffers kept apart modulo 4096: not worth it.
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

/// y[i] = e[i] * factor for i < n, past the caches.
static inline void scale_streaming(const float *e, float *y, size_t n, SOFTMAX_VECTOR factor) {
    size_t i = head_of(y, n);
    scale(e, y, i, factor);
    for (; n - i >= LINE; i += LINE) {
        stream_scaled(e + i, y + i, factor);
    }
    scale(e + i, y + i, n - i, factor);
}

/// y[i] = 0 for i < n, past the caches.
static inline void zero_streaming(float *y, size_t n) {
    size_t i = head_of(y, n);
    memset(y, 0, i * sizeof(*y));
    for (; n - i >= LINE; i += LINE) {
        stream_zeros(y + i);
    }
    memset(y + i, 0, (n - i) * sizeof(*y));
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    float *e = workspace;
    for (size_t i = 0; i < args->rows; i++) {
        const struct softmax_row row = softmax_row_at(args, i);
        const struct softmax_row next = softmax_row_at(args, i + 1 < args->rows ? i + 1 : i);
        const struct mha_span span = row.span;
        if (span.begin < span.end) {
            const size_t n = span.end - span.begin;
            const float *const x = row.x + span.begin;
            const SOFTMAX_SUM sum = SOFTMAX_EXPS(softmax_exponent_of(SOFTMAX_LARGEST(x, n)), x, e,
                                                 n, next.x + next.span.begin, NULL);
            SOFTMAX_STORE(e + sum.whole, sum.tail);
            scale_streaming(e, row.y + span.begin, n, SOFTMAX_SET(softmax_factor(sum.total)));
        }
        zero_streaming(row.y, span.begin);
        zero_streaming(row.y + span.end, args->cols - span.end);
    }
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

/// The exponentials of a row, and of the lanes behind it.
static size_t workspace_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + SOFTMAX_LANES) * sizeof(float);
}
