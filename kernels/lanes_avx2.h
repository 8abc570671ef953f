/// One vector of the AVX2 level under the names that kernels of several ISAs are written in; see
/// lanes.h.
#ifndef MHA_LANES_AVX2_H
#define MHA_LANES_AVX2_H

#include <immintrin.h>
#include <stddef.h>

#include "vec_avx2.h"

typedef __m256 lanes;

enum { LANES = 8 };

static inline lanes lanes_load(const float *p, size_t n) {
    return n >= LANES ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, vec_avx2_mask(n));
}

static inline lanes lanes_hold(lanes v) {
    __asm__("" : "+x"(v));
    return v;
}

static inline void lanes_store(float *p, lanes v, size_t n) {
    if (n >= LANES) {
        _mm256_storeu_ps(p, v);
    } else {
        vec_avx2_store_tail(p, v, n);
    }
}

static inline void lanes_stream_line(float *p, const lanes *v) {
    _mm256_stream_ps(p, v[0]);
    _mm256_stream_ps(p + 8, v[1]);
}

static inline void lanes_fence(void) {
    _mm_sfence();
}

static inline lanes lanes_set(float value) {
    return _mm256_set1_ps(value);
}

static inline lanes lanes_index(void) {
    return _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
}

static inline lanes lanes_add(lanes a, lanes b) {
    return _mm256_add_ps(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b) {
    return _mm256_sub_ps(a, b);
}

static inline lanes lanes_mul(lanes a, lanes b) {
    return _mm256_mul_ps(a, b);
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c) {
    return _mm256_fmadd_ps(a, b, c);
}

static inline lanes lanes_fnma(lanes a, lanes b, lanes c) {
    return _mm256_fnmadd_ps(a, b, c);
}

static inline lanes lanes_abs(lanes a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/// Both halves get all four values from the load itself, so that no value crosses halves.
static inline lanes lanes_load_twice(const float *p, size_t n) {
    const __m128 four = n >= LANES / 2
                            ? _mm_loadu_ps(p)
                            : _mm256_castps256_ps128(_mm256_maskload_ps(p, vec_avx2_mask(n)));
    return _mm256_permutevar_ps(_mm256_set_m128(four, four),
                                _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
}

static inline lanes lanes_rotate(lanes v, lanes cosines, lanes sines) {
    return _mm256_fmaddsub_ps(v, cosines, _mm256_mul_ps(_mm256_permute_ps(v, 0xb1), sines));
}

#endif
