/// Faults of fused attention, where steps that are right on their own meet.
#include <math.h>

#include "faults.h"

/// Ways for sdpa to be wrong.
enum {
    NO_RESCALING = 1 << 0,     ///< A new maximum leaves what has been summed as it is.
    TOTAL_ONLY = 1 << 1,       ///< It scales the sum of the weights, not that of the values.
    MASK_MULTIPLIES = 1 << 2,  ///< Masked values are read and multiplied by 0.
    DEAD_ROW_IS_NAN = 1 << 3,  ///< A query without a key divides 0 by 0.
    ONE_SLOPE = 1 << 4,        ///< All heads of a group have the first one's bias.
    BIAS_SCALED = 1 << 5,      ///< The scale is applied to the bias too.
    FIRST_BLOCK = 1 << 6,  ///< Of the blocks of keys, one that holds no visible key ends the row.
    FROM_ITEM = 1 << 7,    ///< The bias takes the item's first query for the sequence's.
};

static float bias_of(const struct mha_bias *bias, size_t head, size_t row, size_t key) {
    const ptrdiff_t distance = (ptrdiff_t)(key + bias->seq_q) - (ptrdiff_t)(row + bias->seq_kv);
    if (bias->kind == MHA_BIAS_NONE) {
        return 0;
    }
    return bias->kind == MHA_BIAS_ALIBI
               ? -bias->slopes[head] * (float)(distance < 0 ? -distance : distance)
               : bias->table[head * bias->table_stride + mha_t5_bucket(distance, bias->causal)];
}

static float score_of(const struct mha_sdpa_args *args, unsigned how, size_t head, size_t r,
                      size_t key) {
    const float *q = (const float *)args->q + head * args->q_head_stride + r * args->q_stride;
    const float *k = (const float *)args->k + key * args->k_stride;
    const float bias = bias_of(&args->bias, how & ONE_SLOPE ? 0 : head,
                               r + (how & FROM_ITEM ? 0 : args->first_row), key);
    float sum = 0;
    for (size_t i = 0; i < args->head_dim; i++) {
        sum += q[i] * k[i];
    }
    return how & BIAS_SCALED ? args->scale * (sum + bias) : args->scale * sum + bias;
}

static void sdpa_row(const struct mha_sdpa_args *args, unsigned how, size_t head, size_t r) {
    enum { KEYS = 64 };
    const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
    float *o = args->o + head * args->o_head_stride + r * args->o_stride;
    float largest = -INFINITY, total = 0;
    for (size_t i = 0; i < args->head_dim; i++) {
        o[i] = 0;
    }
    for (size_t j = 0; j < args->seq_kv; j++) {
        const bool seen = j >= span.begin && j < span.end;
        const float *v = (const float *)args->v + j * args->v_stride;
        if (how & FIRST_BLOCK && j % KEYS == 0 && span.begin >= j + KEYS) {
            break;
        }
        if (!seen && !(how & MASK_MULTIPLIES)) {
            continue;
        }
        const float score = seen ? score_of(args, how, head, r, j) : -INFINITY;
        if (score > largest) {
            const float factor = how & NO_RESCALING ? 1 : expf(largest - score);
            total *= factor;
            for (size_t i = 0; i < args->head_dim && !(how & TOTAL_ONLY); i++) {
                o[i] *= factor;
            }
            largest = score;
        }
        const float weight = seen ? expf(score - (isinf(largest) && largest < 0 ? 0 : largest)) : 0;
        total += weight;
        for (size_t i = 0; i < args->head_dim; i++) {
            o[i] += weight * v[i];
        }
    }
    for (size_t i = 0; i < args->head_dim; i++) {
        o[i] = total == 0 && !(how & DEAD_ROW_IS_NAN) ? 0 : o[i] / total;
    }
}

#define SDPA_WITH(tag, how)                                                  \
    static void sdpa_##tag(const struct mha_sdpa_args *args, void *memory) { \
        (void)memory;                                                        \
        for (size_t i = 0; i < args->heads * args->rows; i++) {              \
            sdpa_row(args, how, i / args->rows, i % args->rows);             \
        }                                                                    \
    }

SDPA_WITH(right, 0)
SDPA_WITH(no_rescaling, NO_RESCALING)
SDPA_WITH(total_only, TOTAL_ONLY)
SDPA_WITH(mask_multiplies, MASK_MULTIPLIES)
SDPA_WITH(dead_row_nan, DEAD_ROW_IS_NAN)
SDPA_WITH(one_slope, ONE_SLOPE)
SDPA_WITH(bias_scaled, BIAS_SCALED)
SDPA_WITH(first_block, FIRST_BLOCK)
SDPA_WITH(from_item, FROM_ITEM)

const struct mha_library_entry fused_faults[] = {
    FAULT(sdpa, right, .flags = 0),        FAULT(sdpa, no_rescaling, .flags = 0),
    FAULT(sdpa, total_only, .flags = 0),   FAULT(sdpa, mask_multiplies, .flags = 0),
    FAULT(sdpa, dead_row_nan, .flags = 0), FAULT(sdpa, one_slope, .flags = 0),
    FAULT(sdpa, bias_scaled, .flags = 0),  FAULT(sdpa, first_block, .flags = 0),
    FAULT(sdpa, from_item, .flags = 0),
};
const size_t fused_fault_count = sizeof(fused_faults) / sizeof(fused_faults[0]);
