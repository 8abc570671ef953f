/// What T5's bias adds, as a strip over distances: a row of the bias is the same row shifted by one
/// for each query, so that the buckets are looked up once for an item. Beyond the strip on either
/// side the bias is constant.
#ifndef MHA_BIAS_STRIP_H
#define MHA_BIAS_STRIP_H

#include <stdbool.h>
#include <stddef.h>

#include "mha_kernel.h"

/// Distance from which on all share a bucket: Raffel et al. 2020, section 2.1.
enum { BIAS_STRIP_REACH = 128 };

/// Elements of a cache line. The strip is as much longer on either side, so that the part of a row
/// that it is for may begin and end with a line of the row.
enum { BIAS_STRIP_LINE = 16 };

/// Place of distance 0.
enum { BIAS_STRIP_ORIGIN = BIAS_STRIP_REACH + BIAS_STRIP_LINE };

struct bias_strip {
    _Alignas(64) float at[2 * BIAS_STRIP_ORIGIN + 1];  ///< Distances -ORIGIN ... ORIGIN.
    float behind;                                      ///< Of all distances below those.
    float ahead;                                       ///< Of all distances above those.
};

/// The parts of a row: keys [0, begin) are behind the strip, [end, cols) ahead of it; the strip's
/// part is at `window`.
struct bias_parts {
    size_t begin;
    size_t end;
    const float *window;
};

/// Gets the position of the item's query `row`.
static inline ptrdiff_t bias_position(const struct mha_bias_args *args, size_t row) {
    return (ptrdiff_t)(args->first_row + row + args->bias.seq_kv) - (ptrdiff_t)args->bias.seq_q;
}

/// Expands the table of one head.
static inline void bias_strip_make(struct bias_strip *strip, const struct mha_bias *bias) {
    const size_t buckets = mha_t5_buckets(bias->causal);
    const float *behind = bias->table, *ahead = bias->causal ? NULL : bias->table + buckets;
    size_t far = 0;
    for (size_t b = 0; b < buckets; b++) {
        const size_t end =
            b + 1 < buckets ? mha_t5_bucket_begin(b + 1, bias->causal) : BIAS_STRIP_ORIGIN + 1;
        for (; far < end; far++) {
            // Distance 0 counts as behind.
            strip->at[BIAS_STRIP_ORIGIN + far] = ahead && far > 0 ? ahead[b] : behind[0];
            strip->at[BIAS_STRIP_ORIGIN - far] = behind[b];
        }
    }
    strip->behind = strip->at[0];
    strip->ahead = strip->at[(size_t)2 * BIAS_STRIP_ORIGIN];
}

/// Gets how many of `cols` keys are below `key`, rounded down to whole lines.
static inline size_t bias_lines_below(ptrdiff_t key, size_t cols) {
    const size_t below = key > 0 ? (size_t)key / BIAS_STRIP_LINE * BIAS_STRIP_LINE : 0;
    return below < cols ? below : cols;
}

/// Divides the row of a query at `position`.
static inline struct bias_parts bias_parts_of(const struct bias_strip *strip, ptrdiff_t position,
                                              size_t cols) {
    struct bias_parts parts;
    parts.begin = bias_lines_below(position - BIAS_STRIP_REACH + 1, cols);
    parts.end = bias_lines_below(position + BIAS_STRIP_REACH + BIAS_STRIP_LINE - 1, cols);
    parts.window = strip->at;
    if (parts.begin < parts.end) {
        parts.window += BIAS_STRIP_ORIGIN + (ptrdiff_t)parts.begin - position;
    }
    return parts;
}

#endif
