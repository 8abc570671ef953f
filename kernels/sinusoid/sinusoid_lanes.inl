/// sinusoid, f32, over the vector of one ISA: a row of x plus a row of the table. Includers define
/// MHA_ISA_NAME, MHA_KERNEL_SYMBOL and what lanes.h asks for.
///
/// Error: one rounding. Tail: see lanes.h. Registers: 8 vectors.
#include "lanes.h"
#include "mha_kernel.h"

struct inputs {
    const float *x;
    const float *pe;
};

static inline lanes sum(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    const struct inputs *in = inputs;
    return lanes_add(lanes_load(in->x + i, n), lanes_load(in->pe + i, n));
}

static void run(const struct mha_sinusoid_args *args, void *workspace) {
    (void)workspace;
    struct lanes_out out = {0};
    for (size_t t = 0; t < args->tokens; t++) {
        const struct inputs in = {(const float *)args->x + t * args->x_stride,
                                  args->pe + t * args->pe_stride};
        lanes_row(sum, &in, 0, args->cols, args->y + t * args->y_stride, &out);
    }
    lanes_done(&out);
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "sinusoid_f32_" MHA_ISA_NAME "_" LANES_TAG,
    .op = "sinusoid",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = LANES_TAG,
    .summary = LANES_SUMMARY,
    .run = {.sinusoid = run},
    .step = LANES_STEP,
    .flags = MHA_FLAG_IN_PLACE,
};
