/// copy_f32, plain C: the rate of scalar loads and stores, 8 per round so that loop control costs
/// nothing. No `restrict`, or compilers would call memcpy; see move_scalar.h. Bit-exact.
/// Tail: element by element.
#include "mha_kernel.h"

enum { STEP = 8 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float *x = args->x;
    float *y = args->y;
    size_t i = 0;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k++) {
            y[i + k] = x[i + k];
        }
    }
    for (; i < count; i++) {
        y[i] = x[i];
    }
}

const struct mha_kernel copy_f32_scalar_u8 = {
    .name = "copy_f32_scalar_u8",
    .op = "copy",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "u8",
    .summary = "scalar loads and stores, 8 at a time",
    .run = {.copy = run},
    .step = STEP,
};
