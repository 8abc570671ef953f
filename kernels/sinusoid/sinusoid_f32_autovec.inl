/// sinusoid_f32 as the compiler vectorises it. Includers define MHA_ISA_NAME and MHA_KERNEL_SYMBOL.
/// `omp simd` says that iterations are independent; `restrict` would be wrong in place. Error: one
/// rounding. Tail: the compiler's.
#include "mha_kernel.h"

static void run(const struct mha_sinusoid_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        const float *x = (const float *)args->x + t * args->x_stride;
        const float *pe = args->pe + t * args->pe_stride;
        float *y = args->y + t * args->y_stride;
#pragma omp simd
        for (size_t i = 0; i < args->cols; i++) {
            y[i] = x[i] + pe[i];
        }
    }
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "sinusoid_f32_" MHA_ISA_NAME "_autovec",
    .op = "sinusoid",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "autovec",
    .summary = "plain C, vectorised by the compiler",
    .run = {.sinusoid = run},
    .step = 64,
    .flags = MHA_FLAG_IN_PLACE,
};
