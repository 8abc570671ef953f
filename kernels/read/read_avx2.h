/// The sum that the kernels of read share at the AVX2 level: the rate of 256-bit loads, by way of
/// a sum in 8 accumulators, enough to cover the latency of the additions.
/// Error: a sum in any order, |error| <= gamma_(count - 1) * sum_i |x_i| (Higham 2002,
/// section 4.2). Tail: masked loads, before the first aligned vector and behind the last.
/// Registers: 8 of 16.
#ifndef MHA_READ_AVX2_H
#define MHA_READ_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include "mha_kernel.h"
#include "vec_avx2.h"

/// Elements of the main loop.
enum { READ_AVX2_STEP = 8 * 8 };

/// Sums args->x, fetching it `ahead` elements before they are added unless that is 0; a constant
/// where this is called.
__attribute__((always_inline)) static inline void read_avx2_sum(const struct mha_stream_args *args,
                                                                const size_t ahead) {
    enum { LANES = 8, ACCUMULATORS = READ_AVX2_STEP / LANES };
    const size_t count = args->count;
    const float *x = args->x;
    // Aligned, no load crosses a cache line.
    const size_t offset = (0 - (uintptr_t)x) / sizeof(float) % LANES;
    size_t i = offset < count ? offset : count;
    __m256 acc[ACCUMULATORS];
    acc[0] = _mm256_maskload_ps(x, vec_avx2_mask(i));
#pragma GCC unroll 8
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[a] = _mm256_setzero_ps();
    }
    for (; count - i >= READ_AVX2_STEP; i += READ_AVX2_STEP) {
        for (size_t line = 0; ahead > 0 && line < READ_AVX2_STEP; line += 16) {
            // An address behind x is not accessed.
            _mm_prefetch((const char *)(x + i + ahead + line), _MM_HINT_T0);
        }
#pragma GCC unroll 8
        for (size_t a = 0; a < ACCUMULATORS; a++) {
            acc[a] = _mm256_add_ps(acc[a], _mm256_loadu_ps(x + i + a * LANES));
        }
    }
    for (; count - i >= LANES; i += LANES) {
        acc[0] = _mm256_add_ps(acc[0], _mm256_loadu_ps(x + i));
    }
    acc[1] = _mm256_add_ps(acc[1], _mm256_maskload_ps(x + i, vec_avx2_mask(count - i)));
#pragma GCC unroll 8
    for (size_t a = 1; a < ACCUMULATORS; a++) {
        acc[0] = _mm256_add_ps(acc[0], acc[a]);
    }
    args->y[0] = vec_avx2_reduce_add(acc[0]);
}

#endif
