/// sinusoid_f32, plain C, one element at a time. Error: one rounding.
#include "mha_kernel.h"

static void run(const struct mha_sinusoid_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        const float *x = (const float *)args->x + t * args->x_stride;
        const float *pe = args->pe + t * args->pe_stride;
        float *y = args->y + t * args->y_stride;
        for (size_t i = 0; i < args->cols; i++) {
            y[i] = x[i] + pe[i];
        }
    }
}

const struct mha_kernel sinusoid_f32_scalar_loop = {
    .name = "sinusoid_f32_scalar_loop",
    .op = "sinusoid",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.sinusoid = run},
    .step = 8,
    .flags = MHA_FLAG_IN_PLACE,
};
