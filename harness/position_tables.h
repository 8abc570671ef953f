/// What the position encodings are made of: tables that follow from the shape alone, and the bias
/// of a group of heads as kernels take it. Everything is computed in double and rounded to float
/// once. Positions count from 0.
#ifndef MHA_POSITION_TABLES_H
#define MHA_POSITION_TABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "mha_kernel.h"
#include "op.h"
#include "problem.h"

/// Writes `rows` rows of sinusoids, from position `first` on: PE(pos, 2i) = sin(pos /
/// 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same; an odd d_model ends with a sine. Vaswani
/// et al. 2017 (arXiv:1706.03762), section 3.5. Row r stands at pe + r * stride; stride >= d_model.
void position_sinusoid(size_t first, size_t rows, size_t d_model, float *pe, size_t stride);

/// Writes the cosines and sines of RoPE's angles pos * base^(-2i/head_dim), i < head_dim/2, for
/// `rows` positions from `first` on. Su et al. 2021 (arXiv:2104.09864), section 3.4.2. Row r stands
/// at r * stride; stride >= head_dim/2. Either table may be NULL: it is not written.
void position_rope(size_t first, size_t rows, size_t head_dim, double base, float *cosines,
                   float *sines, size_t stride);

/// Gets ALiBi's slope of a head, head < heads. Press et al. 2022 (arXiv:2108.12409), section 3: n
/// heads, n a power of two, have the geometric sequence that starts at 2^(-8/n) with that ratio.
/// Other numbers of heads as the authors' code has them: with n the next power of two below, the
/// first n heads have its slopes, the others every second of 2n's, from its first on.
float position_alibi_slope(size_t head, size_t heads);

/// Tells whether a bias is added to the scores of this problem (ALiBi, T5), and if so the shape of
/// the tensor that it comes from, an input: ALiBi's "slopes" [1, 1, heads], given, to be filled by
/// position_bias_fill(); or T5's learned "table" [1, heads, MHA_T5_BUCKETS].
bool position_bias_tensor(const struct problem *problem, struct tensor_shape *shape);

/// The driver's fill() of the tensor of slopes.
void position_bias_fill(const struct problem *problem, const struct tensor *slopes);

/// Gets the bias of the heads from `first_head` (< heads) on, over the tensor of
/// position_bias_tensor(). Of a problem without one the kind is MHA_BIAS_NONE, and `tensor` may be
/// NULL.
struct mha_bias position_bias(const struct problem *problem, size_t first_head,
                              const struct tensor *tensor);

/// Gets what the bias of head `head` of that group adds to the score of query `row` (its index in
/// the whole sequence) and key `key`, without rounding: a slope and a distance below 2^24 have an
/// exact product in double. 0 under MHA_BIAS_NONE. For oracles.
double position_bias_at(const struct mha_bias *bias, size_t head, size_t row, size_t key);

#endif
