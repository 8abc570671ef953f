/// The projections in plain C: run() of both ops.
///
/// Algorithm: each row of x times w, a row of w at a time, so that w is read as it lies in memory.
/// Error: depth products and sums, each rounded: |error| <= gamma_depth * sum_i |x_i w_ij| (Higham
/// 2002, section 3.1).
#include <stddef.h>

#include "mha_kernel.h"

static void run(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        for (size_t j = 0; j < args->cols; j++) {
            y[j] = 0.0f;
        }
        for (size_t i = 0; i < args->depth; i++) {
            const float *w = (const float *)args->w + i * args->w_stride;
            for (size_t j = 0; j < args->cols; j++) {
                y[j] += x[i] * w[j];
            }
        }
    }
}
