/// rope_f32, plain C, one pair at a time. Error: three roundings.
#include "mha_kernel.h"

static void run(const struct mha_rope_args *args, void *workspace) {
    (void)workspace;
    const size_t dim = args->head_dim, pairs = dim / 2;
    const size_t step = args->half ? 1 : 2, apart = args->half ? pairs : 1;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        const float *cosines = args->cos + r * args->angle_stride;
        const float *sines = args->sin + r * args->angle_stride;
        float *y = args->y + r * args->y_stride;
        for (size_t i = 0; i < pairs; i++) {
            const float a = x[i * step], b = x[i * step + apart];
            y[i * step] = a * cosines[i] - b * sines[i];
            y[i * step + apart] = a * sines[i] + b * cosines[i];
        }
        if (dim % 2 != 0) {
            y[dim - 1] = x[dim - 1];
        }
    }
}

const struct mha_kernel rope_f32_scalar_loop = {
    .name = "rope_f32_scalar_loop",
    .op = "rope",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.rope = run},
    .step = 8,
    .flags = MHA_FLAG_IN_PLACE,
};
