/// qk in plain C: one dot product per score, one element at a time. Includers may define
/// QK_ELEMENT, the type of Q's and K's elements, and QK_LOAD, which makes a float of one; float
/// otherwise.
///
/// Algorithm: the formula. Error: head_dim products and sums and one product with scale, each
/// rounded: |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1).
#include <stddef.h>

#include "mha_kernel.h"

#ifndef QK_ELEMENT
#define QK_ELEMENT float
#define QK_LOAD(x) (x)
#endif

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    const QK_ELEMENT *q = args->q;
    const QK_ELEMENT *k = args->k;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const QK_ELEMENT *query = q + h * args->q_head_stride + r * args->q_stride;
            float *scores = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const QK_ELEMENT *key = k + j * args->k_stride;
                float sum = 0.0f;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += QK_LOAD(query[i]) * QK_LOAD(key[i]);
                }
                scores[j] = args->scale * sum;
            }
        }
    }
}
