/// peak_f32, AVX2+FMA: the rate of 256-bit fused multiply-adds on 12 independent accumulators. Two
/// per cycle with a latency of 4 (5 on Haswell) need 8 (10) of them.
/// The loop is FMAs and its own control, as the assembly shows. Registers: 14 of 16.
#include <immintrin.h>

#include "mha_kernel.h"
#include "peak_lanes.h"

enum { LANES = 8, ACCUMULATORS = 12 };

static void run(const struct mha_peak_args *args, void *workspace) {
    (void)workspace;
    const __m256 one = _mm256_set1_ps(peak_opaque(1.0f));
    const __m256 increment = _mm256_set1_ps(peak_opaque(args->increment));
    __m256 acc[ACCUMULATORS];
#pragma GCC unroll 12
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        acc[a] = _mm256_set1_ps(peak_opaque(args->start));
    }
    for (size_t step = 0; step < args->steps; step++) {
#pragma GCC unroll 12
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = _mm256_fmadd_ps(acc[a], one, increment);
        }
    }
    float lanes[ACCUMULATORS * LANES];
#pragma GCC unroll 12
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        _mm256_storeu_ps(lanes + a * LANES, acc[a]);
    }
    peak_store_lanes((size_t)ACCUMULATORS * LANES, lanes, args->y);
}

const struct mha_kernel peak_f32_avx2_fma12 = {
    .name = "peak_f32_avx2_fma12",
    .op = "peak",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "fma12",
    .summary = "12 chains of 256-bit FMA",
    .run = {.peak = run},
    .flops_per_step = 2 * ACCUMULATORS * LANES,
};
