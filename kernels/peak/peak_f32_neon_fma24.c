/// peak_f32, NEON: the rate of 128-bit fused multiply-adds on 24 independent accumulators. Four per
/// cycle with a latency of 4 (Neoverse V1, V2, Apple's large cores) need 16 of them.
/// FMLA overwrites its addend, so the chain runs through that: increment * 1 + lane, which is the
/// same number. The loop is FMAs and its own control, as the assembly shows. Registers: 26 of 32.
#include <arm_neon.h>

#include "mha_kernel.h"
#include "peak_lanes.h"

enum { LANES = 4, ACCUMULATORS = 24 };

static void run(const struct mha_peak_args *args, void *workspace) {
    (void)workspace;
    const float32x4_t one = vdupq_n_f32(peak_opaque(1.0f));
    const float32x4_t increment = vdupq_n_f32(peak_opaque(args->increment));
    float32x4_t acc[ACCUMULATORS];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        acc[a] = vdupq_n_f32(peak_opaque(args->start));
    }
    for (size_t step = 0; step < args->steps; step++) {
#pragma GCC unroll 24
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = vfmaq_f32(acc[a], increment, one);
        }
    }
    float lanes[ACCUMULATORS * LANES];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        vst1q_f32(lanes + a * LANES, acc[a]);
    }
    peak_store_lanes((size_t)ACCUMULATORS * LANES, lanes, args->y);
}

const struct mha_kernel peak_f32_neon_fma24 = {
    .name = "peak_f32_neon_fma24",
    .op = "peak",
    .dtype = "f32",
    .isa = "neon",
    .tag = "fma24",
    .summary = "24 chains of 128-bit FMA",
    .run = {.peak = run},
    .flops_per_step = 2 * ACCUMULATORS * LANES,
};
