/// embed_f32, plain C, one element at a time. Error: two roundings.
#include "mha_kernel.h"

static void run(const struct mha_embed_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        const float *token = (const float *)args->token + (size_t)args->ids[t] * args->token_stride;
        const float *position = (const float *)args->position + t * args->position_stride;
        const float *segment =
            (const float *)args->segment + (size_t)args->segments[t] * args->segment_stride;
        float *y = args->y + t * args->y_stride;
        for (size_t i = 0; i < args->cols; i++) {
            y[i] = (token[i] + position[i]) + segment[i];
        }
    }
}

const struct mha_kernel embed_f32_scalar_loop = {
    .name = "embed_f32_scalar_loop",
    .op = "embed",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.embed = run},
    .step = 8,
};
