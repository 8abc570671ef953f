/// pv in plain C: the rows of v that a query sees, each times its weight, added up.
///
/// Algorithm: the formula, a row of v at a time. Error: up to seq_kv products and sums, each
/// rounded: |error| <= gamma_n * sum_j |p_j v_ji| over the n visible keys (Higham 2002,
/// section 3.1).
#include <stddef.h>

#include "mha_kernel.h"

static void run(const struct mha_pv_args *args, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *p = (const float *)args->p + h * args->p_head_stride + r * args->p_stride;
            float *o = args->o + h * args->o_head_stride + r * args->o_stride;
            const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
            for (size_t i = 0; i < args->head_dim; i++) {
                o[i] = 0.0f;
            }
            for (size_t j = span.begin; j < span.end; j++) {
                const float *v = (const float *)args->v + j * args->v_stride;
                for (size_t i = 0; i < args->head_dim; i++) {
                    o[i] += p[j] * v[i];
                }
            }
        }
    }
}

const struct mha_kernel pv_f32_scalar_axpy = {
    .name = "pv_f32_scalar_axpy",
    .op = "pv",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "axpy",
    .summary = "plain C, row by row of V",
    .run = {.pv = run},
};
