/// peak_f32, plain C: the rate of scalar multiplications and additions. No fused multiply-add: that
/// would be an ISA level's own instruction and another rounding, and plain C is built without
/// contraction. A step counts its 12 multiplications and 12 additions.
/// 12 independent chains: a multiplication and an addition take 6 to 8 cycles one after the other,
/// and no core of today issues more than two such pairs of scalars per cycle and hides less
/// with 12. Registers: 14 of 16.
#include "mha_kernel.h"
#include "peak_lanes.h"

enum { ACCUMULATORS = 12 };

static void run(const struct mha_peak_args *args, void *workspace) {
    (void)workspace;
    const float one = peak_opaque(1.0f);
    const float increment = peak_opaque(args->increment);
    float lanes[ACCUMULATORS];
#pragma GCC unroll 12
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        lanes[a] = peak_opaque(args->start);
    }
    for (size_t step = 0; step < args->steps; step++) {
#pragma GCC unroll 12
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            lanes[a] = lanes[a] * one + increment;
        }
    }
    peak_store_lanes(ACCUMULATORS, lanes, args->y);
}

const struct mha_kernel peak_f32_scalar_muladd12 = {
    .name = "peak_f32_scalar_muladd12",
    .op = "peak",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "muladd12",
    .summary = "12 chains of scalar multiply and add",
    .run = {.peak = run},
    .flops_per_step = 2 * ACCUMULATORS,
};
