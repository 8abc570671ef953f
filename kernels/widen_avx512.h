/// Vectors of widened elements at the AVX-512 level; see widen.h. bf16 is shifted to where a float
/// has its upper half, f16 is converted, denormals included whatever MXCSR says (Intel SDM, vol.
/// 2C, VCVTPH2PS).
#ifndef MHA_WIDEN_AVX512_H
#define MHA_WIDEN_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "vec_avx512.h"
#include "widen.h"

/// Widens 16 elements of two bytes. Always inlined: where vectors are translated to narrower ones
/// it is long enough for GCC 12 to call it, and the caller then lacks a vzeroupper.
__attribute__((always_inline)) static inline __m512 widen_avx512_halves(const enum widen_type type,
                                                                        __m256i bits) {
    return type == WIDEN_BF16
               ? _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))
               : _mm512_cvtph_ps(bits);
}

/// Loads 16 elements of p from `index` on.
static inline __m512 widen_avx512_load(const enum widen_type type, const void *p, size_t index) {
    const void *at = widen_at(type, p, index);
    return type == WIDEN_F32 ? _mm512_loadu_ps(at)
                             : widen_avx512_halves(type, _mm256_loadu_si256((const __m256i *)at));
}

/// Loads those of them that are in `mask`; the other lanes are zeros and are not accessed.
static inline __m512 widen_avx512_tail(const enum widen_type type, const void *p, size_t index,
                                       __mmask16 mask) {
    const void *at = widen_at(type, p, index);
    return type == WIDEN_F32 ? _mm512_maskz_loadu_ps(mask, at)
                             : widen_avx512_halves(type, _mm256_maskz_loadu_epi16(mask, at));
}

/// Widens `rows` rows of `count` elements to floats. Between the rows of `to` it writes nothing.
static inline void widen_avx512_rows(const enum widen_type type, size_t rows, size_t count,
                                     const void *from, size_t from_stride, float *to,
                                     size_t to_stride) {
    const __mmask16 mask = vec_avx512_mask(count % 16);
    for (size_t r = 0; r < rows; r++) {
        const void *row = widen_at(type, from, r * from_stride);
        float *out = to + r * to_stride;
        size_t i = 0;
        for (; i + 16 <= count; i += 16) {
            _mm512_storeu_ps(out + i, widen_avx512_load(type, row, i));
        }
        if (i < count) {
            _mm512_mask_storeu_ps(out + i, mask, widen_avx512_tail(type, row, i, mask));
        }
    }
}

#endif
