/// read_f32, AVX-512: the rate of 512-bit loads, by way of a sum in 8 accumulators, enough to cover
/// the latency of the additions.
/// Error: a sum in any order, |error| <= gamma_(count - 1) * sum_i |x_i| (Higham 2002,
/// section 4.2). Tail: masked loads, before the first aligned vector and behind the last.
/// Registers: 8 of 32.
#include <immintrin.h>

#include "mha_kernel.h"
#include "vec_avx512.h"

enum { LANES = 16, ACCUMULATORS = 8, STEP = LANES * ACCUMULATORS };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float *x = args->x;
    // Aligned, no load crosses a cache line.
    const size_t offset = (0 - (uintptr_t)x) / sizeof(float) % LANES;
    size_t i = offset < count ? offset : count;
    __m512 acc[ACCUMULATORS];
    acc[0] = _mm512_maskz_loadu_ps(vec_avx512_mask(i), x);
#pragma GCC unroll 8
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[a] = _mm512_setzero_ps();
    }
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = _mm512_add_ps(acc[a], _mm512_loadu_ps(x + i + a * LANES));
        }
    }
    for (; count - i >= LANES; i += LANES) {
        acc[0] = _mm512_add_ps(acc[0], _mm512_loadu_ps(x + i));
    }
    acc[1] = _mm512_add_ps(acc[1], _mm512_maskz_loadu_ps(vec_avx512_mask(count - i), x + i));
#pragma GCC unroll 8
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[0] = _mm512_add_ps(acc[0], acc[a]);
    }
    args->y[0] = _mm512_reduce_add_ps(acc[0]);
}

const struct mha_kernel read_f32_avx512_u8 = {
    .name = "read_f32_avx512_u8",
    .op = "read",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "u8",
    .summary = "8 sums of 16 lanes",
    .run = {.read = run},
    .step = STEP,
};
