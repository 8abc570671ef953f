/// One vector of the AVX-512 level under the names that kernels of several ISAs are written in; see
/// lanes.h.
#ifndef MHA_LANES_AVX512_H
#define MHA_LANES_AVX512_H

#include <immintrin.h>
#include <stddef.h>

#include "vec_avx512.h"

typedef __m512 lanes;

enum { LANES = 16 };

static inline lanes lanes_load(const float *p, size_t n) {
    return n >= LANES ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(vec_avx512_mask(n), p);
}

static inline lanes lanes_hold(lanes v) {
#ifdef __AVX512F__  // emulated, it is no register
    __asm__("" : "+v"(v));
#endif
    return v;
}

static inline void lanes_store(float *p, lanes v, size_t n) {
    if (n >= LANES) {
        _mm512_storeu_ps(p, v);
    } else {
        _mm512_mask_storeu_ps(p, vec_avx512_mask(n), v);
    }
}

static inline void lanes_stream_line(float *p, const lanes *v) {
    _mm512_stream_ps(p, v[0]);
}

static inline void lanes_fence(void) {
    _mm_sfence();
}

static inline lanes lanes_set(float value) {
    return _mm512_set1_ps(value);
}

static inline lanes lanes_index(void) {
    return _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

static inline lanes lanes_add(lanes a, lanes b) {
    return _mm512_add_ps(a, b);
}

static inline lanes lanes_sub(lanes a, lanes b) {
    return _mm512_sub_ps(a, b);
}

static inline lanes lanes_mul(lanes a, lanes b) {
    return _mm512_mul_ps(a, b);
}

static inline lanes lanes_fma(lanes a, lanes b, lanes c) {
    return _mm512_fmadd_ps(a, b, c);
}

static inline lanes lanes_fnma(lanes a, lanes b, lanes c) {
    return _mm512_fnmadd_ps(a, b, c);
}

static inline lanes lanes_abs(lanes a) {
    return _mm512_abs_ps(a);
}

static inline lanes lanes_load_twice(const float *p, size_t n) {
    const __m512 eight = n >= LANES / 2 ? _mm512_castps256_ps512(_mm256_loadu_ps(p))
                                        : _mm512_maskz_loadu_ps(vec_avx512_mask(n), p);
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7),
                                 eight);
}

static inline lanes lanes_rotate(lanes v, lanes cosines, lanes sines) {
    return _mm512_fmaddsub_ps(v, cosines, _mm512_mul_ps(_mm512_permute_ps(v, 0xb1), sines));
}

#endif
