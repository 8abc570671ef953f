/// qk in plain C: one dot product per score, one element at a time.
///
/// Algorithm: the formula. Error: head_dim products and sums and one product with scale, each
/// rounded: |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1).
#include <stddef.h>

#include "mha_kernel.h"

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    const float *q = args->q;
    const float *k = args->k;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *query = q + h * args->q_head_stride + r * args->q_stride;
            float *scores = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const float *key = k + j * args->k_stride;
                float sum = 0.0f;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += query[i] * key[i];
                }
                scores[j] = args->scale * sum;
            }
        }
    }
}

const struct mha_kernel qk_f32_scalar_dot = {
    .name = "qk_f32_scalar_dot",
    .op = "qk",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "dot",
    .summary = "plain C, one dot product per score",
    .run = {.qk = run},
};
