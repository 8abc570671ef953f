/// What the autovec variants of several ops share: C that a compiler turns into vectors of its own
/// choice, in loops under `#pragma omp simd`.
#ifndef MHA_VEC_AUTOVEC_H
#define MHA_VEC_AUTOVEC_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Partial maxima of a row. A single maximum over floats is not one that every compiler reorders,
/// not even under omp simd reduction; independent ones are lanes as they stand.
enum { VEC_AUTOVEC_LANES = 32 };

static inline float vec_autovec_larger(float a, float b) {
    return a > b ? a : b;  // b where a is NaN: a NaN never becomes the maximum
}

/// Gets the largest of x[0 ... n), NaN left out; -inf when there is none.
static inline float vec_autovec_largest(const float *x, size_t n) {
    float top[VEC_AUTOVEC_LANES];
    for (size_t j = 0; j < VEC_AUTOVEC_LANES; j++) {
        top[j] = -INFINITY;
    }
    size_t i = 0;
    for (; i + VEC_AUTOVEC_LANES <= n; i += VEC_AUTOVEC_LANES) {
#pragma omp simd
        for (size_t j = 0; j < VEC_AUTOVEC_LANES; j++) {
            top[j] = vec_autovec_larger(x[i + j], top[j]);
        }
    }
#pragma omp simd
    for (size_t j = 0; j < n - i; j++) {
        top[j] = vec_autovec_larger(x[i + j], top[j]);
    }
    for (size_t half = VEC_AUTOVEC_LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            top[j] = vec_autovec_larger(top[half + j], top[j]);
        }
    }
    return top[0];
}

/// exp(d) for d <= 0, -inf or NaN: 2^n * p(r), d = n ln2 + r, |r| <= ln2/2. 0 below 2^-126. Error
/// <= 2.00 ULP where the compiler fuses multiplications and additions as it may (every f32 tried).
static inline float vec_autovec_exp(float d) {
    // 1.5 * 2^23 rounds to an integer in the low mantissa bits; 127 is the bias of the exponent.
    const float magic = 0x1.8000fep+23f;
    const float t = d * 0x1.715476p+0f + magic;  // 1 / ln 2
    const float n = t - magic;
    // ln2 in two parts: n * ln2 to 2^-53.
    float r = d - n * 0x1.62e430p-1f;
    r = r + n * 0x1.05c610p-29f;
    // Minimax in the relative error over +-ln2/2 (Remez, 1.54 * 2^-24); the constant term is 1.
    float p = 0x1.0fa7d8p-7f;
    p = p * r + 0x1.573ad0p-5f;
    p = p * r + 0x1.555a6ep-3f;
    p = p * r + 0x1.fffdc4p-2f;
    p = p * r + 0x1.fffff6p-1f;
    uint32_t bits;
    memcpy(&bits, &t, sizeof(bits));
    bits <<= 23;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    const float e = scale + (scale * r) * p;
    return d < -0x1.5d589ep+6f ? 0.0f : e;  // ln 2^-126; false for a NaN, which stays one
}

#endif
