/// pv in plain C: the rows of v that a query sees, each times its weight, added up. Includers may
/// define PV_ELEMENT, the type of P's and V's elements, and PV_LOAD, which makes a float of one;
/// float otherwise.
///
/// Algorithm: the formula, a row of v at a time. Error: up to seq_kv products and sums, each
/// rounded: |error| <= gamma_n * sum_j |p_j v_ji| over the n visible keys (Higham 2002,
/// section 3.1).
#include <stddef.h>

#include "mha_kernel.h"

#ifndef PV_ELEMENT
#define PV_ELEMENT float
#define PV_LOAD(x) (x)
#endif

static void run(const struct mha_pv_args *args, void *workspace) {
    (void)workspace;
    const PV_ELEMENT *weights = args->p;
    const PV_ELEMENT *values = args->v;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const PV_ELEMENT *p = weights + h * args->p_head_stride + r * args->p_stride;
            float *o = args->o + h * args->o_head_stride + r * args->o_stride;
            const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
            for (size_t i = 0; i < args->head_dim; i++) {
                o[i] = 0.0f;
            }
            for (size_t j = span.begin; j < span.end; j++) {
                const PV_ELEMENT *v = values + j * args->v_stride;
                for (size_t i = 0; i < args->head_dim; i++) {
                    o[i] += PV_LOAD(p[j]) * PV_LOAD(v[i]);
                }
            }
        }
    }
}
