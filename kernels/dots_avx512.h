/// What dots.inl takes of the AVX-512 level.
#ifndef MHA_DOTS_AVX512_H
#define MHA_DOTS_AVX512_H

#include "lanes_avx512.h"
#include "widen_avx512.h"

/// Four rows of q by four of k: eight loads feed sixteen multiply-adds.
enum { DOTS = 16 };

/// See dots_avx2.h: 16384 keys of head_dim 128 took 21 to 23 % more time so (Zen 4).
#define DOTS_FETCH_TWICE false

/// Gets the sums of neighbouring quarters of a and b: of a, then of b.
static inline lanes add_quarters(lanes a, lanes b) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

/// Gets quarters each of whose lanes is a sum of one of v[0 ... 4), of the same quarter of it.
static inline lanes add_within_quarters(const lanes v[4]) {
    const __m512d a = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1])));
    const __m512d b = _mm512_castps_pd(
        _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3])));
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
}

static inline void lanes_store_sums(float *p, const lanes v[DOTS], float factor) {
    const lanes low = add_quarters(add_within_quarters(v), add_within_quarters(v + 4));
    const lanes high = add_quarters(add_within_quarters(v + 8), add_within_quarters(v + 12));
    _mm512_storeu_ps(p, _mm512_mul_ps(add_quarters(low, high), _mm512_set1_ps(factor)));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_avx512_load(type, p, index)
                      : widen_avx512_tail(type, p, index, vec_avx512_mask(n));
}

#endif
