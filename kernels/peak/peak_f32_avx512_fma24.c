/// peak_f32, AVX-512: the rate of 512-bit fused multiply-adds on 24 independent accumulators. Two
/// per cycle with a latency of 4 need 8 of them; more keep both ports busy when one is late.
/// The loop is FMAs and its own control, as the assembly shows. Registers: 26 of 32.
#include <immintrin.h>

#include "mha_kernel.h"
#include "peak_lanes.h"

enum { LANES = 16, ACCUMULATORS = 24 };

static void run(const struct mha_peak_args *args, void *workspace) {
    (void)workspace;
    const __m512 one = _mm512_set1_ps(peak_opaque(1.0f));
    const __m512 increment = _mm512_set1_ps(peak_opaque(args->increment));
    __m512 acc[ACCUMULATORS];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        acc[a] = _mm512_set1_ps(peak_opaque(args->start));
    }
    for (size_t step = 0; step < args->steps; step++) {
#pragma GCC unroll 24
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = _mm512_fmadd_ps(acc[a], one, increment);
        }
    }
    float lanes[ACCUMULATORS * LANES];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        _mm512_storeu_ps(lanes + a * LANES, acc[a]);
    }
    peak_store_lanes((size_t)ACCUMULATORS * LANES, lanes, args->y);
}

const struct mha_kernel peak_f32_avx512_fma24 = {
    .name = "peak_f32_avx512_fma24",
    .op = "peak",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "fma24",
    .summary = "24 chains of 512-bit FMA",
    .run = {.peak = run},
    .flops_per_step = 2 * ACCUMULATORS * LANES,
};
