/// The whole layer as its driver and its oracle see it.
#ifndef MHA_OPS_MHA_H
#define MHA_OPS_MHA_H

#include "op.h"

/// Places of the tensors; 0 of one that the problem does not have (x is never asked for so).
struct mha_places {
    size_t x, w_qkv, w_out;
    size_t past_k, past_v;  ///< The cache.
    size_t added;           ///< Sinusoids or learned positions.
    size_t angles;          ///< RoPE's cosines and sines.
    size_t bias;            ///< ALiBi's slopes, T5's table.
    size_t y;
};
struct mha_places mha_places(const struct problem *problem);

/// Positions that the cache holds, d_model, tokens of all sequences, columns of W_QKV.
size_t mha_past(const struct problem *problem);
size_t mha_depth(const struct problem *problem);
size_t mha_tokens(const struct problem *problem);
size_t mha_outputs(const struct problem *problem);

/// The driver's oracle_rows().
bool mha_oracle_rows(const struct problem *problem, const struct tensor *tensors, size_t count,
                     const size_t *planes, const size_t *rows, double *want, double *bound,
                     int threads);

#endif
