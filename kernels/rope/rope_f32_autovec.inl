/// rope_f32 as the compiler vectorises it. Includers define MHA_ISA_NAME and MHA_KERNEL_SYMBOL.
/// `omp simd` says that iterations are independent; `restrict` would be wrong in place. Error:
/// three roundings, two where the compiler fuses. Tail: the compiler's.
#include "mha_kernel.h"

static void interleaved_row(size_t pairs, const float *x, const float *cosines, const float *sines,
                            float *y) {
#pragma omp simd
    for (size_t i = 0; i < pairs; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * cosines[i] - b * sines[i];
        y[2 * i + 1] = a * sines[i] + b * cosines[i];
    }
}

static void split_row(size_t pairs, const float *x, const float *cosines, const float *sines,
                      float *y) {
#pragma omp simd
    for (size_t i = 0; i < pairs; i++) {
        const float a = x[i], b = x[pairs + i];
        y[i] = a * cosines[i] - b * sines[i];
        y[pairs + i] = a * sines[i] + b * cosines[i];
    }
}

static void run(const struct mha_rope_args *args, void *workspace) {
    (void)workspace;
    const size_t dim = args->head_dim, pairs = dim / 2;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        const float *cosines = args->cos + r * args->angle_stride;
        const float *sines = args->sin + r * args->angle_stride;
        float *y = args->y + r * args->y_stride;
        if (args->half) {
            split_row(pairs, x, cosines, sines, y);
        } else {
            interleaved_row(pairs, x, cosines, sines, y);
        }
        if (dim % 2 != 0) {
            y[dim - 1] = x[dim - 1];
        }
    }
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "rope_f32_" MHA_ISA_NAME "_autovec",
    .op = "rope",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "autovec",
    .summary = "plain C, vectorised by the compiler",
    .run = {.rope = run},
    .step = 64,
    .flags = MHA_FLAG_IN_PLACE,
};
