/// Vectors of widened elements at the AVX2 level; see widen.h. bf16 is shifted to where a float has
/// its upper half, f16 goes through F16C, which takes denormals whatever MXCSR says (Intel SDM,
/// vol. 2C, VCVTPH2PS).
#ifndef MHA_WIDEN_AVX2_H
#define MHA_WIDEN_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "vec_avx2.h"
#include "widen.h"

/// Widens 8 elements of two bytes.
static inline __m256 widen_avx2_halves(const enum widen_type type, __m128i bits) {
    return type == WIDEN_BF16
               ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))
               : _mm256_cvtph_ps(bits);
}

/// Loads 8 elements of p from `index` on.
static inline __m256 widen_avx2_load(const enum widen_type type, const void *p, size_t index) {
    const void *at = widen_at(type, p, index);
    return type == WIDEN_F32 ? _mm256_loadu_ps(at)
                             : widen_avx2_halves(type, _mm_loadu_si128((const __m128i *)at));
}

/// Loads the first n < 8 of them, `mask` being vec_avx2_mask(n); the other lanes are zeros. Reads
/// nothing behind them.
static inline __m256 widen_avx2_tail(const enum widen_type type, const void *p, size_t index,
                                     size_t n, __m256i mask) {
    const char *at = widen_at(type, p, index);
    if (type == WIDEN_F32) {
        return _mm256_maskload_ps((const float *)(const void *)at, mask);
    }
    // By fours, twos and ones: AVX2 has no masked load of 16-bit elements.
    uint64_t low = 0, rest = 0;
    uint32_t two;
    uint16_t one;
    if (n & 1) {
        memcpy(&one, at + 2 * (n - 1), sizeof(one));
        rest = one;
    }
    if (n & 2) {
        memcpy(&two, at + 2 * (n & 4), sizeof(two));
        rest = rest << 32 | two;
    }
    if (n & 4) {
        memcpy(&low, at, sizeof(low));
    }
    const __m128i bits = n & 4 ? _mm_set_epi64x((long long)rest, (long long)low)
                               : _mm_set_epi64x(0, (long long)rest);
    return widen_avx2_halves(type, bits);
}

/// Widens `rows` rows of `count` elements to floats. Between the rows of `to` it writes nothing.
static inline void widen_avx2_rows(const enum widen_type type, size_t rows, size_t count,
                                   const void *from, size_t from_stride, float *to,
                                   size_t to_stride) {
    const __m256i mask = vec_avx2_mask(count % 8);
    for (size_t r = 0; r < rows; r++) {
        const void *row = widen_at(type, from, r * from_stride);
        float *out = to + r * to_stride;
        size_t i = 0;
        for (; i + 8 <= count; i += 8) {
            _mm256_storeu_ps(out + i, widen_avx2_load(type, row, i));
        }
        if (i < count) {
            vec_avx2_store_tail(out + i, widen_avx2_tail(type, row, i, count - i, mask), count - i);
        }
    }
}

#endif
