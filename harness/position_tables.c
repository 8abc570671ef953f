#include "position_tables.h"

#include <math.h>
#include <stdlib.h>

/// The base of the sinusoids' wavelengths: Vaswani et al. 2017, section 3.5.
#define SINUSOID_BASE 10000.0

/// Angular frequency of pair `pair` of a vector of `width` elements.
static double frequency(double base, size_t pair, size_t width) {
    return pow(base, -(double)(2 * pair) / (double)width);
}

void position_sinusoid(size_t first, size_t rows, size_t d_model, float *pe, size_t stride) {
    // Pairs outside, positions inside: a frequency costs more than a sine.
    for (size_t i = 0; i < d_model; i += 2) {
        const double omega = frequency(SINUSOID_BASE, i / 2, d_model);
        for (size_t r = 0; r < rows; r++) {
            double sine, cosine;
            sincos((double)(first + r) * omega, &sine, &cosine);
            pe[r * stride + i] = (float)sine;
            if (i + 1 < d_model) {
                pe[r * stride + i + 1] = (float)cosine;
            }
        }
    }
}

void position_rope(size_t first, size_t rows, size_t head_dim, double base, float *cosines,
                   float *sines, size_t stride) {
    for (size_t i = 0; i < head_dim / 2; i++) {
        const double omega = frequency(base, i, head_dim);
        for (size_t r = 0; r < rows; r++) {
            double sine, cosine;
            sincos((double)(first + r) * omega, &sine, &cosine);
            if (cosines) {
                cosines[r * stride + i] = (float)cosine;
            }
            if (sines) {
                sines[r * stride + i] = (float)sine;
            }
        }
    }
}

float position_alibi_slope(size_t head, size_t heads) {
    size_t power = 1;
    while (power <= heads / 2) {
        power *= 2;
    }
    // The steps of the sequence of 2 * power heads: every second one is a step of that of power.
    const size_t steps = head < power ? 2 * (head + 1) : 2 * (head - power) + 1;
    return (float)exp2(-8.0 * (double)steps / (double)(2 * power));
}

bool position_bias_tensor(const struct problem *problem, struct tensor_shape *shape) {
    const size_t heads = problem->shape.heads;
    if (problem->position.kind == POSITION_ALIBI) {
        *shape = (struct tensor_shape){.name = "slopes",
                                       .role = TENSOR_INPUT,
                                       .planes = 1,
                                       .rows = 1,
                                       .cols = heads,
                                       .given = true};
        return true;
    }
    if (problem->position.kind == POSITION_T5) {
        *shape = (struct tensor_shape){.name = "table",
                                       .role = TENSOR_INPUT,
                                       .planes = 1,
                                       .rows = heads,
                                       .cols = MHA_T5_BUCKETS};
        return true;
    }
    return false;
}

void position_bias_fill(const struct problem *problem, const struct tensor *slopes) {
    float *row = tensor_row(slopes, 0, 0);
    for (size_t h = 0; h < slopes->shape.cols; h++) {
        row[h] = position_alibi_slope(h, problem->shape.heads);
    }
}

struct mha_bias position_bias(const struct problem *problem, size_t first_head,
                              const struct tensor *tensor) {
    struct mha_bias bias = {
        .kind = MHA_BIAS_NONE, .seq_q = problem->shape.seq_q, .seq_kv = problem->shape.seq_kv};
    if (problem->position.kind == POSITION_ALIBI) {
        bias.kind = MHA_BIAS_ALIBI;
        bias.slopes = tensor_row(tensor, 0, 0) + first_head;
    } else if (problem->position.kind == POSITION_T5) {
        bias.kind = MHA_BIAS_T5;
        bias.table = tensor_row(tensor, 0, first_head);
        bias.table_stride = tensor->row_stride;
        bias.causal = problem->position.causal;
    }
    return bias;
}

double position_bias_at(const struct mha_bias *bias, size_t head, size_t row, size_t key) {
    const ptrdiff_t position = (ptrdiff_t)(row + bias->seq_kv) - (ptrdiff_t)bias->seq_q;
    const ptrdiff_t distance = (ptrdiff_t)key - position;
    switch (bias->kind) {
        case MHA_BIAS_NONE:
            break;
        case MHA_BIAS_ALIBI:
            return -(double)bias->slopes[head] * (double)labs(distance);
        case MHA_BIAS_T5:
            return (double)
                bias->table[head * bias->table_stride + mha_t5_bucket(distance, bias->causal)];
    }
    return 0;
}
