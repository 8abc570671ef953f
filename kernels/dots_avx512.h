/// What dots.inl takes of the AVX-512 level.
#ifndef MHA_DOTS_AVX512_H
#define MHA_DOTS_AVX512_H

#include "lanes_avx512.h"
#include "widen_avx512.h"

static inline __m256 add_halves(lanes v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

static inline void lanes_store_sums(float *p, const lanes v[8], float factor) {
    // Sums of neighbours, twice: quarter i of the result is of v[i] in each half.
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(add_halves(v[0]), add_halves(v[1])),
                                    _mm256_hadd_ps(add_halves(v[2]), add_halves(v[3])));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(add_halves(v[4]), add_halves(v[5])),
                                    _mm256_hadd_ps(add_halves(v[6]), add_halves(v[7])));
    const __m256 sums =
        _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    _mm256_storeu_ps(p, _mm256_mul_ps(sums, _mm256_set1_ps(factor)));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_avx512_load(type, p, index)
                      : widen_avx512_tail(type, p, index, vec_avx512_mask(n));
}

#endif
