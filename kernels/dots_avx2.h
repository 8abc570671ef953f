/// What dots.inl takes of the AVX2 level.
#ifndef MHA_DOTS_AVX2_H
#define MHA_DOTS_AVX2_H

#include "lanes_avx2.h"
#include "widen_avx2.h"

/// As many as chains.
enum { DOTS = 8 };

/// Whether keys of four queries that come from memory are fetched into L2 before they are into L1:
/// floats of 16384 keys took 8 and 37 % less time so (head_dim 64 and 128, Zen 4).
#define DOTS_FETCH_TWICE true

static inline void lanes_store_sums(float *p, const lanes v[DOTS], float factor) {
    // Sums of neighbours, twice: quarter i of the result is of v[i] in each half.
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    const __m256 sums =
        _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    _mm256_storeu_ps(p, _mm256_mul_ps(sums, _mm256_set1_ps(factor)));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_avx2_load(type, p, index)
                      : widen_avx2_tail(type, p, index, n, vec_avx2_mask(n));
}

#endif
