/// softmax in three passes over each span, over those of one ISA: for scores that the caches hold.
/// Includers include softmax_<isa>.h and define SOFTMAX_VECTOR, SOFTMAX_SUM, SOFTMAX_LARGEST,
/// SOFTMAX_EXPS and SOFTMAX_FACTOR of it, and
///
///   scale(y, n, factor)             y[i] *= factor for i < n, whole vectors
///   store_tail(y, tail, n, factor)  y[i] = tail[i] * factor for i < n, less than a vector
///
/// Algorithm: the maximum; exp of the distance to it, and the sum; scaling by the sum's reciprocal.
/// Two of these wait for a reduction across a vector, and the scaling for a division too: some 40
/// cycles, in which what waits fills the scheduler. So no pass follows the one that it waits for:
///
///   short rows  exponentials of row i, maximum of row i + 2, scaling of row i - 1
///   long rows   exponentials of row i, maximum of row i + 1, scaling of row i
///
/// Short are rows of which L1 holds the six that are at work. With long ones the wait is a small
/// part, and a row that is scaled later has left L1.
#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

/// Six rows of 4 KiB in an L1 of 32 KiB.
enum { SHORT_COLS = 1024 };

/// The visible part of a row.
struct line {
    const float *x;
    float *y;
    size_t n;
};

/// Gets row i, or an empty one behind the last; with `zero`, its masked part is zeroed.
static inline struct line line_at(const struct mha_softmax_args *args, size_t i, bool zero) {
    if (i >= args->rows) {
        return (struct line){args->x, args->y, 0};
    }
    const struct softmax_row row = softmax_row_at(args, i);
    if (zero) {
        softmax_zero_masked(args, row);
    }
    return (struct line){row.x + row.span.begin, row.y + row.span.begin,
                         row.span.end - row.span.begin};
}

/// Scales a row of exponentials, of which those behind the `whole` first are in `tail`.
static inline void finish(struct line line, size_t whole, SOFTMAX_VECTOR tail,
                          SOFTMAX_VECTOR factor) {
    scale(line.y, whole, factor);
    store_tail(line.y + whole, tail, line.n - whole, factor);
}

static void run_short(const struct mha_softmax_args *args) {
    struct line now = line_at(args, 0, true), next = line_at(args, 1, true);
    float largest = SOFTMAX_LARGEST(now.x, now.n);
    float largest_of_next = SOFTMAX_LARGEST(next.x, next.n);
    struct line done = {now.x, now.y, 0};
    size_t whole = 0;
    SOFTMAX_VECTOR tail = SOFTMAX_FACTOR(0.0f), factor = tail;
    for (size_t i = 0; i < args->rows; i++) {
        const struct line after = line_at(args, i + 2, true);
        const SOFTMAX_SUM sum = SOFTMAX_EXPS(largest, now.x, now.y, now.n, after.x, next.y);
        largest = largest_of_next;
        largest_of_next = SOFTMAX_LARGEST(after.x, after.n);
        finish(done, whole, tail, factor);
        done = now;
        whole = sum.whole;
        tail = sum.tail;
        factor = SOFTMAX_FACTOR(sum.total);
        now = next;
        next = after;
    }
    finish(done, whole, tail, factor);
}

static void run_long(const struct mha_softmax_args *args) {
    struct line now = line_at(args, 0, false);
    float largest = SOFTMAX_LARGEST(now.x, now.n);
    for (size_t i = 0; i < args->rows; i++) {
        const struct line next = line_at(args, i + 1, false);
        const SOFTMAX_SUM sum = SOFTMAX_EXPS(largest, now.x, now.y, now.n, next.x, NULL);
        largest = SOFTMAX_LARGEST(next.x, next.n);
        finish(now, sum.whole, sum.tail, SOFTMAX_FACTOR(sum.total));
        // Where it comes to memory: a row of the output in one go.
        softmax_zero_masked(args, softmax_row_at(args, i));
        now = next;
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    if (args->cols <= SHORT_COLS) {
        run_short(args);
    } else {
        run_long(args);
    }
}
