/// softmax in three passes over each span, over those of one ISA: for scores that the caches hold.
/// Includers include softmax_<isa>.h and define SOFTMAX_VECTOR, SOFTMAX_SUM, SOFTMAX_LARGEST,
/// SOFTMAX_EXPS and SOFTMAX_FACTOR of it, and
///
///   scale(y, n, factor)             y[i] *= factor for i < n, whole vectors
///   store_tail(y, tail, n, factor)  y[i] = tail[i] * factor for i < n, less than a vector
///
/// Algorithm: the maximum; exp of the distance to it, and the sum; scaling by the sum's reciprocal.
/// A row's maximum is looked for before the row above it is scaled: either pass hides the latency
/// of the reduction across a vector before the other one.
#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    struct softmax_row row = softmax_row_at(args, 0);
    size_t n = args->rows > 0 ? row.span.end - row.span.begin : 0;
    SOFTMAX_VECTOR largest = SOFTMAX_LARGEST(row.x + row.span.begin, n);
    for (size_t i = 0; i < args->rows; i++) {
        float *const y = row.y + row.span.begin;
        const bool last = i + 1 == args->rows;
        const struct softmax_row next = softmax_row_at(args, last ? i : i + 1);
        const float *const next_x = next.x + next.span.begin;
        const size_t next_n = last ? 0 : next.span.end - next.span.begin;
        if (n > 0) {
            const SOFTMAX_SUM sum = SOFTMAX_EXPS(largest, row.x + row.span.begin, y, n, next_x);
            largest = SOFTMAX_LARGEST(next_x, next_n);
            const SOFTMAX_VECTOR factor = SOFTMAX_FACTOR(sum.total);
            scale(y, sum.whole, factor);
            store_tail(y + sum.whole, sum.tail, n - sum.whole, factor);
        } else {
            largest = SOFTMAX_LARGEST(next_x, next_n);
        }
        softmax_zero_masked(args, row);
        row = next;
        n = next_n;
    }
}
