/// read_f32, NEON: the rate of 128-bit loads, by way of a sum in 16 accumulators, enough to cover
/// the latency of four additions per cycle. Error: a sum in any order, |error| <= gamma_(count - 1)
/// * sum_i |x_i| (Higham 2002, section 4.2). Tail: loads of single lanes. Registers: 32 of 32, or
/// 16 where a load goes straight into its sum.
#include <arm_neon.h>

#include "mha_kernel.h"
#include "vec_neon.h"

enum { LANES = 4, ACCUMULATORS = 16, STEP = LANES * ACCUMULATORS };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float *x = args->x;
    // Aligned, no load crosses a cache line.
    const size_t offset = (0 - (uintptr_t)x) / sizeof(float) % LANES;
    size_t i = offset < count ? offset : count;
    float32x4_t acc[ACCUMULATORS];
    acc[0] = vec_neon_load_tail(x, i, 0.0f);
#pragma GCC unroll 16
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[a] = vdupq_n_f32(0.0f);
    }
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 16
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = vaddq_f32(acc[a], vld1q_f32(x + i + a * LANES));
        }
    }
    for (; count - i >= LANES; i += LANES) {
        acc[0] = vaddq_f32(acc[0], vld1q_f32(x + i));
    }
    acc[1] = vaddq_f32(acc[1], vec_neon_load_tail(x + i, count - i, 0.0f));
#pragma GCC unroll 16
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[0] = vaddq_f32(acc[0], acc[a]);
    }
    args->y[0] = vaddvq_f32(acc[0]);
}

const struct mha_kernel read_f32_neon_u16 = {
    .name = "read_f32_neon_u16",
    .op = "read",
    .dtype = "f32",
    .isa = "neon",
    .tag = "u16",
    .summary = "16 sums of 4 lanes",
    .run = {.read = run},
    .step = STEP,
};
