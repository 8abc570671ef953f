/// embed_f32 as the compiler vectorises it. Includers define MHA_ISA_NAME and MHA_KERNEL_SYMBOL.
/// Error: two roundings. Tail: the compiler's.
#include "mha_kernel.h"

static void run(const struct mha_embed_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        const float *restrict token =
            (const float *)args->token + (size_t)args->ids[t] * args->token_stride;
        const float *restrict position = (const float *)args->position + t * args->position_stride;
        const float *restrict segment =
            (const float *)args->segment + (size_t)args->segments[t] * args->segment_stride;
        float *restrict y = args->y + t * args->y_stride;
#pragma omp simd
        for (size_t i = 0; i < args->cols; i++) {
            y[i] = (token[i] + position[i]) + segment[i];
        }
    }
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "embed_f32_" MHA_ISA_NAME "_autovec",
    .op = "embed",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "autovec",
    .summary = "plain C, vectorised by the compiler",
    .run = {.embed = run},
    .step = 64,
};
