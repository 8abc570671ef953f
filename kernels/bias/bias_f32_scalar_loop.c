/// bias_f32, plain C, one element at a time. Error: ALiBi two roundings, T5 one.
#include <stdlib.h>

#include "bias/bias_strip.h"
#include "mha_kernel.h"

static float bias_at(const struct mha_bias *bias, ptrdiff_t distance) {
    if (bias->kind == MHA_BIAS_ALIBI) {
        return -bias->slopes[0] * (float)labs(distance);
    }
    return bias->table[mha_t5_bucket(distance, bias->causal)];
}

static void run(const struct mha_bias_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        const ptrdiff_t position = bias_position(args, r);
        for (size_t c = 0; c < args->cols; c++) {
            y[c] = x[c] + bias_at(&args->bias, (ptrdiff_t)c - position);
        }
    }
}

const struct mha_kernel bias_f32_scalar_loop = {
    .name = "bias_f32_scalar_loop",
    .op = "bias",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.bias = run},
    .step = 8,
    .flags = MHA_FLAG_IN_PLACE,
};
