/// The bias of a score, as the kernels of sdpa make it: from the distance alone, so that no matrix
/// of biases exists.
#ifndef MHA_SDPA_BIAS_H
#define MHA_SDPA_BIAS_H

#include <stddef.h>

#include "mha_kernel.h"

/// Gets the distance of key `key` from query `row`, both as in the whole sequence.
static inline ptrdiff_t sdpa_distance(const struct mha_bias *bias, size_t row, size_t key) {
    return (ptrdiff_t)(key + bias->seq_q) - (ptrdiff_t)(row + bias->seq_kv);
}

/// From this distance on, either way, T5 tells distances apart no longer: mha_t5_bucket().
enum { SDPA_T5_FAR = 128 };

/// Entries of a table by distance that is read in vectors of up to SDPA_T5_PAD elements: the one of
/// distance d is at d + SDPA_T5_FAR + SDPA_T5_PAD, and both ends hold a vector of far ones.
enum { SDPA_T5_PAD = 16, SDPA_T5_ENTRIES = 2 * (SDPA_T5_FAR + SDPA_T5_PAD) };

/// Writes the biases of one head by distance, times `factor`: SDPA_T5_ENTRIES.
static inline void sdpa_t5_by_distance(const struct mha_bias *bias, size_t head, float factor,
                                       float *table) {
    const float *const buckets = bias->table + head * bias->table_stride;
    for (size_t i = 0; i < SDPA_T5_ENTRIES; i++) {
        const ptrdiff_t distance = (ptrdiff_t)i - (SDPA_T5_FAR + SDPA_T5_PAD);
        table[i] = factor * buckets[mha_t5_bucket(distance, bias->causal)];
    }
}

/// Gets the biases of the distances distance, distance + 1, ... in such a table: valid for as many
/// as SDPA_T5_PAD of them.
static inline const float *sdpa_t5_at(const float *table, ptrdiff_t distance) {
    const ptrdiff_t lowest = -(SDPA_T5_FAR + SDPA_T5_PAD);
    const ptrdiff_t place = distance < lowest        ? lowest
                            : distance > SDPA_T5_FAR ? SDPA_T5_FAR
                                                     : distance;
    return table + (place - lowest);
}

#endif
