/// write_f32, plain C: the rate of scalar stores, 8 per round so that loop control costs nothing.
/// Tail: element by element.
#include "mha_kernel.h"

enum { STEP = 8 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float value = args->value;
    float *y = args->y;
    size_t i = 0;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k++) {
            y[i + k] = value;
        }
    }
    for (; i < count; i++) {
        y[i] = value;
    }
}

const struct mha_kernel write_f32_scalar_u8 = {
    .name = "write_f32_scalar_u8",
    .op = "write",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "u8",
    .summary = "scalar stores, 8 at a time",
    .run = {.write = run},
    .step = STEP,
};
