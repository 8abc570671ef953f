/// What all softmax kernels share: the walk over the rows and their visible spans. A kernel brings
/// the softmax of one span.
#ifndef MHA_SOFTMAX_ROWS_H
#define MHA_SOFTMAX_ROWS_H

#include <math.h>
#include <string.h>

#include "mha_kernel.h"

/// Gets the reference of the exponents from the largest score that is not NaN. When every score is
/// -inf or NaN, distances to -inf would all be NaN; to 0 they are -inf, which counts as nothing, or
/// NaN for a NaN.
static inline float softmax_reference(float largest) {
    return largest == -INFINITY ? 0.0f : largest;
}

/// Gets the factor of the last pass. The sum is at least 1, or NaN, which then spreads over the
/// row, or 0 when every score is -inf: the result is zeros.
static inline float softmax_factor(float sum) {
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/// Calls span_softmax(x, y, n) for the visible span of every row, and zeroes the rest of the row.
/// Meant to be inlined with a constant function.
static inline void softmax_rows(const struct mha_softmax_args *args,
                                void (*span_softmax)(const float *x, float *y, size_t n)) {
    const float *x = (const float *)args->x;
    float *y = args->y;
    for (size_t row = 0; row < args->rows; row++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + row);
        if (span.begin < span.end) {
            span_softmax(x + span.begin, y + span.begin, span.end - span.begin);
        }
        if (span.begin > 0) {
            memset(y, 0, span.begin * sizeof(*y));
        }
        if (span.end < args->cols) {
            memset(y + span.end, 0, (args->cols - span.end) * sizeof(*y));
        }
        x += args->x_stride;
        y += args->y_stride;
    }
}

#endif
