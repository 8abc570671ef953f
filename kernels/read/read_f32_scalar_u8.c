/// read_f32, plain C: the rate of scalar loads, by way of a sum in 8 accumulators, enough to cover
/// the latency of the additions.
/// Error: a sum in any order, |error| <= gamma_(count - 1) * sum_i |x_i| (Higham 2002,
/// section 4.2). Tail: element by element. Registers: 8 of 16.
#include "mha_kernel.h"

enum { ACCUMULATORS = 8 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float *x = args->x;
    float acc[ACCUMULATORS] = {0.0f};
    size_t i = 0;
    for (; count - i >= ACCUMULATORS; i += ACCUMULATORS) {
#pragma GCC unroll 8
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] += x[i + a];
        }
    }
    for (; i < count; i++) {
        acc[0] += x[i];
    }
    args->y[0] = ((acc[0] + acc[1]) + (acc[2] + acc[3])) + ((acc[4] + acc[5]) + (acc[6] + acc[7]));
}

const struct mha_kernel read_f32_scalar_u8 = {
    .name = "read_f32_scalar_u8",
    .op = "read",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "u8",
    .summary = "8 scalar sums",
    .run = {.read = run},
    .step = ACCUMULATORS,
};
