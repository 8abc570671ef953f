/// bias_f32 as the compiler vectorises it: the same parts of a row as in the hand-written variants,
/// see bias_strip.h. Includers define MHA_ISA_NAME and MHA_KERNEL_SYMBOL. `omp simd` says that
/// iterations are independent; `restrict` would be wrong in place. Error: ALiBi two roundings, one
/// where the compiler fuses; T5 one. Tail: the compiler's.
#include <math.h>

#include "bias/bias_strip.h"
#include "mha_kernel.h"

static void add_slope(size_t cols, const float *x, float slope, float position, float *y) {
    // Vectors of floats are made from ints faster than from longs; keys are far fewer than 2^31.
    const int count = (int)cols;
#pragma omp simd
    for (int c = 0; c < count; c++) {
        y[c] = x[c] - slope * fabsf((float)c - position);
    }
}

static void add_constant(size_t cols, const float *x, float value, float *y) {
#pragma omp simd
    for (size_t c = 0; c < cols; c++) {
        y[c] = x[c] + value;
    }
}

static void add_window(size_t cols, const float *x, const float *window, float *y) {
#pragma omp simd
    for (size_t c = 0; c < cols; c++) {
        y[c] = x[c] + window[c];
    }
}

static void run(const struct mha_bias_args *args, void *workspace) {
    (void)workspace;
    struct bias_strip strip;
    if (args->bias.kind == MHA_BIAS_T5) {
        bias_strip_make(&strip, &args->bias);
    }
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        const ptrdiff_t position = bias_position(args, r);
        if (args->bias.kind == MHA_BIAS_ALIBI) {
            add_slope(args->cols, x, args->bias.slopes[0], (float)position, y);
            continue;
        }
        const struct bias_parts parts = bias_parts_of(&strip, position, args->cols);
        add_constant(parts.begin, x, strip.behind, y);
        add_window(parts.end - parts.begin, x + parts.begin, parts.window, y + parts.begin);
        add_constant(args->cols - parts.end, x + parts.end, strip.ahead, y + parts.end);
    }
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "bias_f32_" MHA_ISA_NAME "_autovec",
    .op = "bias",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "autovec",
    .summary = "plain C, vectorised by the compiler",
    .run = {.bias = run},
    .step = 64,
    .flags = MHA_FLAG_IN_PLACE,
};
