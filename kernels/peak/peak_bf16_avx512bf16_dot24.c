/// peak_bf16, AVX-512 with BF16: the rate of 512-bit vdpbf16ps on 24 independent accumulators, four
/// operations a lane: two products and two sums. More chains than its latency times its rate, of
/// Sapphire Rapids and of Zen 4, asks for. The loop is vdpbf16ps and its own control. Registers: 26
/// of 32.
///
/// Each step adds 1 * increment + 1 * 0 to a lane: whole numbers below 2^24 are exact, and the
/// increment is one of 8 bits.
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "mha_kernel.h"
#include "peak_lanes.h"

enum { LANES = 16, ACCUMULATORS = 24 };

/// Gets a vector whose lanes hold the pair (value as bf16, 0).
static inline __m512bh pairs_of(float value) {
    uint32_t bits;
    const float hidden = peak_opaque(value);
    memcpy(&bits, &hidden, sizeof(bits));
    return (__m512bh)_mm512_set1_epi32((int)(bits >> 16));
}

static void run(const struct mha_peak_args *args, void *workspace) {
    (void)workspace;
    const __m512bh one = pairs_of(1.0f);
    const __m512bh increment = pairs_of(args->increment);
    __m512 acc[ACCUMULATORS];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        acc[a] = _mm512_set1_ps(peak_opaque(args->start));
    }
    for (size_t step = 0; step < args->steps; step++) {
#pragma GCC unroll 24
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = _mm512_dpbf16_ps(acc[a], one, increment);
        }
    }
    float lanes[ACCUMULATORS * LANES];
#pragma GCC unroll 24
    for (size_t a = 0; a < ACCUMULATORS; a++) {
        _mm512_storeu_ps(lanes + a * LANES, acc[a]);
    }
    peak_store_lanes((size_t)ACCUMULATORS * LANES, lanes, args->y);
}

const struct mha_kernel peak_bf16_avx512bf16_dot24 = {
    .name = "peak_bf16_avx512bf16_dot24",
    .op = "peak",
    .dtype = "bf16",
    .isa = "avx512bf16",
    .tag = "dot24",
    .summary = "24 chains of 512-bit vdpbf16ps",
    .run = {.peak = run},
    .flops_per_step = 4 * ACCUMULATORS * LANES,
};
