/// What all softmax kernels share: the walk over the rows and their visible spans. A kernel brings
/// the softmax of one span.
#ifndef MHA_SOFTMAX_ROWS_H
#define MHA_SOFTMAX_ROWS_H

#include <math.h>
#include <string.h>

#include "mha_kernel.h"
#include "vec.h"

/// Gets the reference of the exponents from the largest score that is not NaN. When every score is
/// -inf or NaN, distances to -inf would all be NaN; to 0 they are -inf, which counts as nothing, or
/// NaN for a NaN.
static inline float softmax_reference(float largest) {
    return largest == -INFINITY ? 0.0f : largest;
}

/// How scores become exponents of 2, so that a power takes no multiplication by ln 2: x log2(e) +
/// from by one FMA, where `from` is the reference's exponent, rounded. That rounding is in every
/// power of the row, so that it leaves the result alone; but for it the largest power would be 1,
/// and it is within 1 +- 2^-8 while the reference is not `far` from 0. There, (x - from) log2(e):
/// the difference is exact of every score near enough to count (Sterbenz's lemma).
struct softmax_exponent {
    bool far;
    float from;
};

static inline struct softmax_exponent softmax_exponent_of(float largest) {
    const float reference = softmax_reference(largest);
    const bool far = !(fabsf(reference) <= 0x1p+16f);
    return (struct softmax_exponent){far, far ? reference : -(reference * VEC_LOG2_E)};
}

/// The same from a whole number: what differs by that alone can be brought together by a power of
/// 2, exactly. The largest power is between 1 and 2. Without a meaning where it is `far`.
static inline struct softmax_exponent softmax_whole_exponent_of(float largest) {
    const struct softmax_exponent exponent = softmax_exponent_of(largest);
    return (struct softmax_exponent){exponent.far, -floorf(-exponent.from)};
}

/// Gets the factor of the last pass. The sum is at least about 1, or NaN, which then spreads over
/// the row, or 0 when every score is -inf: the result is zeros.
static inline float softmax_factor(float sum) {
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/// A row: y[span.begin, span.end) is the softmax of x there, the rest of y is zero.
struct softmax_row {
    const float *x;
    float *y;
    struct mha_span span;
};

static inline struct softmax_row softmax_row_at(const struct mha_softmax_args *args, size_t row) {
    return (struct softmax_row){
        (const float *)args->x + row * args->x_stride,
        args->y + row * args->y_stride,
        mha_row_span(&args->mask, args->first_row + row),
    };
}

/// Zeroes what the mask hides of a row.
static inline void softmax_zero_masked(const struct mha_softmax_args *args,
                                       struct softmax_row row) {
    if (row.span.begin > 0) {
        memset(row.y, 0, row.span.begin * sizeof(*row.y));
    }
    if (row.span.end < args->cols) {
        memset(row.y + row.span.end, 0, (args->cols - row.span.end) * sizeof(*row.y));
    }
}

/// Calls span_softmax(x, y, n) for the visible span of every row, and zeroes the rest of the row.
/// Meant to be inlined with a constant function.
static inline void softmax_rows(const struct mha_softmax_args *args,
                                void (*span_softmax)(const float *x, float *y, size_t n)) {
    for (size_t i = 0; i < args->rows; i++) {
        const struct softmax_row row = softmax_row_at(args, i);
        const struct mha_span span = row.span;
        if (span.begin < span.end) {
            span_softmax(row.x + span.begin, row.y + span.begin, span.end - span.begin);
        }
        softmax_zero_masked(args, row);
    }
}

#endif
