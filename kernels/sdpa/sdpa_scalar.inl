/// sdpa in plain C: one query and one key at a time. Includers may define SDPA_ELEMENT, the type of
/// Q's, K's and V's elements, and SDPA_LOAD, which makes a float of one; float otherwise.
///
/// Algorithm: the online softmax of Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3,
/// carried on to the weighted sum: a key whose score exceeds all before it scales down what has
/// been summed. The sums are kept in the output's row.
///
/// Error: that which harness/ops/sdpa.c derives, at 0.51 ULP of exp (glibc 2.36's expf).
#include <math.h>
#include <stddef.h>

#include "mha_kernel.h"
#include "sdpa/sdpa_bias.h"
#include "softmax/softmax_rows.h"

#ifndef SDPA_ELEMENT
#define SDPA_ELEMENT float
#define SDPA_LOAD(x) (x)
#endif

static float bias_of(const struct mha_bias *bias, size_t head, size_t row, size_t key) {
    const ptrdiff_t distance = sdpa_distance(bias, row, key);
    if (bias->kind == MHA_BIAS_ALIBI) {
        return -bias->slopes[head] * (float)(distance < 0 ? -distance : distance);
    }
    if (bias->kind == MHA_BIAS_T5) {
        return bias->table[head * bias->table_stride + mha_t5_bucket(distance, bias->causal)];
    }
    return 0.0f;
}

static void one_query(const struct mha_sdpa_args *args, size_t head, size_t row,
                      const SDPA_ELEMENT *q, float *o) {
    const struct mha_span span = mha_row_span(&args->mask, row);
    float largest = -INFINITY, sum = 0.0f;
    for (size_t i = 0; i < args->head_dim; i++) {
        o[i] = 0.0f;
    }
    for (size_t j = span.begin; j < span.end; j++) {
        const SDPA_ELEMENT *k = (const SDPA_ELEMENT *)args->k + j * args->k_stride;
        const SDPA_ELEMENT *v = (const SDPA_ELEMENT *)args->v + j * args->v_stride;
        float score = 0.0f;
        for (size_t i = 0; i < args->head_dim; i++) {
            score += SDPA_LOAD(q[i]) * SDPA_LOAD(k[i]);
        }
        score = args->scale * score + bias_of(&args->bias, head, row, j);
        if (score > largest) {  // false for a NaN, which shows in the sum
            const float factor = expf(largest - score);
            for (size_t i = 0; i < args->head_dim; i++) {
                o[i] *= factor;
            }
            sum *= factor;
            largest = score;
        }
        const float weight = expf(score - softmax_reference(largest));
        for (size_t i = 0; i < args->head_dim; i++) {
            o[i] += weight * SDPA_LOAD(v[i]);
        }
        sum += weight;
    }
    for (size_t i = 0; i < args->head_dim; i++) {
        // Not times 0: an infinity among the values would make a NaN of it.
        o[i] = sum == 0.0f ? 0.0f : o[i] / sum;
    }
}

static void run(const struct mha_sdpa_args *args, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            one_query(args, h, args->first_row + r,
                      (const SDPA_ELEMENT *)args->q + h * args->q_head_stride + r * args->q_stride,
                      args->o + h * args->o_head_stride + r * args->o_stride);
        }
    }
}
