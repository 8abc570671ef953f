/// What the AVX-512 softmax kernels share: the first two of their three passes over a span, the
/// maximum, and the exponentials with their sum. How the results reach memory is the kernels' own.
#ifndef MHA_SOFTMAX_AVX512_H
#define MHA_SOFTMAX_AVX512_H

#include <math.h>

#include "softmax/softmax_rows.h"
#include "vec_avx512.h"

/// Elements of a vector; of a step of the loops that only load and store.
enum { SOFTMAX_AVX512_LANES = 16, SOFTMAX_AVX512_STEP = 4 * SOFTMAX_AVX512_LANES };

/// Gets the largest of x[0..n), NaN left out; -inf when there is none.
static inline float softmax_avx512_largest(const float *x, size_t n) {
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    __m512 m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    // vmaxps gives its second operand when either is NaN: no accumulator ever becomes NaN.
    for (; i + SOFTMAX_AVX512_STEP <= n; i += SOFTMAX_AVX512_STEP) {
        m0 = _mm512_max_ps(_mm512_loadu_ps(x + i), m0);
        m1 = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), m1);
        m2 = _mm512_max_ps(_mm512_loadu_ps(x + i + 32), m2);
        m3 = _mm512_max_ps(_mm512_loadu_ps(x + i + 48), m3);
    }
    for (; i + SOFTMAX_AVX512_LANES <= n; i += SOFTMAX_AVX512_LANES) {
        m0 = _mm512_max_ps(_mm512_loadu_ps(x + i), m0);
    }
    if (i < n) {
        m1 = _mm512_max_ps(_mm512_mask_loadu_ps(lowest, vec_avx512_mask(n - i), x + i), m1);
    }
    return vec_avx512_reduce_max(_mm512_max_ps(_mm512_max_ps(m0, m1), _mm512_max_ps(m2, m3)));
}

/// Gets the exponentials of a vector of scores; see struct softmax_exponent.
static inline __m512 softmax_avx512_exp(__m512 x, bool far, __m512 from) {
    const __m512 log2_e = _mm512_set1_ps(VEC_LOG2_E);
    return vec_avx512_exp2(far ? _mm512_mul_ps(_mm512_sub_ps(x, from), log2_e)
                               : _mm512_fmadd_ps(x, log2_e, from));
}

/// Stores the exponentials of x[0..16) to y and gets them.
static inline __m512 softmax_avx512_exp_vector(const float *x, float *y, bool far, __m512 from) {
    const __m512 e = softmax_avx512_exp(_mm512_loadu_ps(x), far, from);
    _mm512_storeu_ps(y, e);
    return e;
}

/// What the last pass needs.
struct softmax_avx512_sum {
    size_t whole;  ///< Elements in whole vectors; the exponentials of these are stored.
    __m512 tail;   ///< The exponentials of the elements behind them, and zeros.
    float total;   ///< The sum of all exponentials.
};

/// Inlined with a constant `far`, and with a `next_y` that is NULL or is not.
__attribute__((always_inline)) static inline struct softmax_avx512_sum softmax_avx512_exps_from(
    bool far, __m512 from, const float *x, float *e, size_t n, const float *next_x,
    const float *next_y) {
    enum { LANES = SOFTMAX_AVX512_LANES, STEP = SOFTMAX_AVX512_STEP };
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        // From 0: clang 19 takes a loop from i for one that might end early.
        for (size_t j = 0; j < STEP; j += LANES) {
            _mm_prefetch((const char *)(next_x + i + j), _MM_HINT_T0);
            if (next_y) {
                _mm_prefetch((const char *)(next_y + i + j), _MM_HINT_T0);
            }
        }
        s0 = _mm512_add_ps(s0, softmax_avx512_exp_vector(x + i, e + i, far, from));
        s1 = _mm512_add_ps(s1, softmax_avx512_exp_vector(x + i + 16, e + i + 16, far, from));
        s2 = _mm512_add_ps(s2, softmax_avx512_exp_vector(x + i + 32, e + i + 32, far, from));
        s3 = _mm512_add_ps(s3, softmax_avx512_exp_vector(x + i + 48, e + i + 48, far, from));
    }
    for (; i + LANES <= n; i += LANES) {
        s0 = _mm512_add_ps(s0, softmax_avx512_exp_vector(x + i, e + i, far, from));
    }
    __m512 tail = _mm512_setzero_ps();
    if (i < n) {
        const __mmask16 mask = vec_avx512_mask(n - i);
        const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), mask, x + i);
        tail = softmax_avx512_exp(v, far, from);
        s1 = _mm512_add_ps(s1, tail);
    }
    const __m512 total = _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3));
    return (struct softmax_avx512_sum){i, tail, vec_avx512_reduce_add(total)};
}

/// Stores 2^exponent of x[i] to e[i] for the whole vectors of x[0..n). e may be x. Next_x, and
/// next_y unless it is NULL, are fetched line by line along the way.
__attribute__((always_inline)) static inline struct softmax_avx512_sum softmax_avx512_exps(
    struct softmax_exponent exponent, const float *x, float *e, size_t n, const float *next_x,
    const float *next_y) {
    const __m512 from = _mm512_set1_ps(exponent.from);
    return exponent.far ? softmax_avx512_exps_from(true, from, x, e, n, next_x, next_y)
                        : softmax_avx512_exps_from(false, from, x, e, n, next_x, next_y);
}

/// Gets exp(x), the power of 2 that the kernels compute of an exponent in two parts: what it is off
/// by is the power's own error, without the exponent's rounding, which grows with the distance.
static inline __m512 softmax_avx512_exp_of(__m512 x) {
    const __m512 log2_e = _mm512_set1_ps(VEC_LOG2_E), rest = _mm512_set1_ps(VEC_LOG2_E_REST);
    // Zero is reached before. vmaxps gives its second operand when either is NaN.
    const __m512 finite = _mm512_max_ps(_mm512_set1_ps(-150.0f), x);
    const __m512 exponent = _mm512_mul_ps(finite, log2_e);
    const __m512 below = _mm512_fmadd_ps(finite, rest, _mm512_fmsub_ps(finite, log2_e, exponent));
    return vec_avx512_power(exponent, &below);
}

/// The exponential alone, for those who check it.
static void softmax_avx512_exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX512_LANES <= count; i += SOFTMAX_AVX512_LANES) {
        _mm512_storeu_ps(y + i, softmax_avx512_exp_of(_mm512_loadu_ps(x + i)));
    }
    if (i < count) {
        const __mmask16 mask = vec_avx512_mask(count - i);
        _mm512_mask_storeu_ps(y + i, mask,
                              softmax_avx512_exp_of(_mm512_maskz_loadu_ps(mask, x + i)));
    }
}

#endif
