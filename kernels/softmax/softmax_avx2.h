/// What the AVX2 softmax kernels share: the first two of their three passes over a span, the
/// maximum, and the exponentials with their sum. How the results reach memory is the kernels' own.
#ifndef MHA_SOFTMAX_AVX2_H
#define MHA_SOFTMAX_AVX2_H

#include <math.h>

#include "softmax/softmax_rows.h"
#include "vec_avx2.h"

/// Elements of a vector; of a step of the loops that only load and store.
enum { SOFTMAX_AVX2_LANES = 8, SOFTMAX_AVX2_STEP = 4 * SOFTMAX_AVX2_LANES };

/// Gets the largest of x[0..n), NaN left out; -inf when there is none.
static inline float softmax_avx2_largest(const float *x, size_t n) {
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    // vmaxps gives its second operand when either is NaN: no accumulator ever becomes NaN.
    for (; i + SOFTMAX_AVX2_STEP <= n; i += SOFTMAX_AVX2_STEP) {
        m0 = _mm256_max_ps(_mm256_loadu_ps(x + i), m0);
        m1 = _mm256_max_ps(_mm256_loadu_ps(x + i + 8), m1);
        m2 = _mm256_max_ps(_mm256_loadu_ps(x + i + 16), m2);
        m3 = _mm256_max_ps(_mm256_loadu_ps(x + i + 24), m3);
    }
    for (; i + SOFTMAX_AVX2_LANES <= n; i += SOFTMAX_AVX2_LANES) {
        m0 = _mm256_max_ps(_mm256_loadu_ps(x + i), m0);
    }
    if (i < n) {
        m1 = _mm256_max_ps(vec_avx2_load_tail(x + i, vec_avx2_mask(n - i), lowest), m1);
    }
    return vec_avx2_reduce_max(_mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3)));
}

/// Gets the exponentials of a vector of scores; see struct softmax_exponent.
static inline __m256 softmax_avx2_exp(__m256 x, bool far, __m256 from) {
    const __m256 log2_e = _mm256_set1_ps(VEC_LOG2_E);
    return vec_avx2_exp2(far ? _mm256_mul_ps(_mm256_sub_ps(x, from), log2_e)
                             : _mm256_fmadd_ps(x, log2_e, from));
}

/// Stores the exponentials of x[0..8) to y and gets them.
static inline __m256 softmax_avx2_exp_vector(const float *x, float *y, bool far, __m256 from) {
    const __m256 e = softmax_avx2_exp(_mm256_loadu_ps(x), far, from);
    _mm256_storeu_ps(y, e);
    return e;
}

/// What the last pass needs.
struct softmax_avx2_sum {
    size_t whole;  ///< Elements in whole vectors; the exponentials of these are stored.
    __m256 tail;   ///< The exponentials of the elements behind them, and zeros.
    float total;   ///< The sum of all exponentials.
};

/// Inlined with a constant `far`, and with a `next_y` that is NULL or is not.
__attribute__((always_inline)) static inline struct softmax_avx2_sum softmax_avx2_exps_from(
    bool far, __m256 from, const float *x, float *e, size_t n, const float *next_x,
    const float *next_y) {
    enum { LANES = SOFTMAX_AVX2_LANES, STEP = 2 * LANES };
    __m256 s0 = _mm256_setzero_ps(), s1 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        _mm_prefetch((const char *)(next_x + i), _MM_HINT_T0);
        if (next_y) {
            _mm_prefetch((const char *)(next_y + i), _MM_HINT_T0);
        }
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, far, from));
        s1 = _mm256_add_ps(s1, softmax_avx2_exp_vector(x + i + 8, e + i + 8, far, from));
    }
    if (i + LANES <= n) {
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, far, from));
        i += LANES;
    }
    // Not within the condition: gcc 12 would spend a register move more per vector of the loop
    // above.
    const __m256i mask = vec_avx2_mask(n - i);
    __m256 tail = _mm256_setzero_ps();
    if (i < n) {
        const __m256 v = vec_avx2_load_tail(x + i, mask, _mm256_set1_ps(-INFINITY));
        tail = softmax_avx2_exp(v, far, from);
        s1 = _mm256_add_ps(s1, tail);
    }
    return (struct softmax_avx2_sum){i, tail, vec_avx2_reduce_add(_mm256_add_ps(s0, s1))};
}

/// Stores 2^exponent of x[i] to e[i] for the whole vectors of x[0..n). e may be x. Next_x, and
/// next_y unless it is NULL, are fetched line by line along the way.
__attribute__((always_inline)) static inline struct softmax_avx2_sum softmax_avx2_exps(
    struct softmax_exponent exponent, const float *x, float *e, size_t n, const float *next_x,
    const float *next_y) {
    const __m256 from = _mm256_set1_ps(exponent.from);
    return exponent.far ? softmax_avx2_exps_from(true, from, x, e, n, next_x, next_y)
                        : softmax_avx2_exps_from(false, from, x, e, n, next_x, next_y);
}

/// Gets exp(x), the power of 2 that the kernels compute of an exponent in two parts: what it is off
/// by is the power's own error, without the exponent's rounding, which grows with the distance.
static inline __m256 softmax_avx2_exp_of(__m256 x) {
    const __m256 log2_e = _mm256_set1_ps(VEC_LOG2_E), rest = _mm256_set1_ps(VEC_LOG2_E_REST);
    // Zero is reached before. vmaxps gives its second operand when either is NaN.
    const __m256 finite = _mm256_max_ps(_mm256_set1_ps(-150.0f), x);
    const __m256 exponent = _mm256_mul_ps(finite, log2_e);
    const __m256 below = _mm256_fmadd_ps(finite, rest, _mm256_fmsub_ps(finite, log2_e, exponent));
    return vec_avx2_power(exponent, &below);
}

/// The exponential alone, for those who check it.
static void softmax_avx2_exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX2_LANES <= count; i += SOFTMAX_AVX2_LANES) {
        _mm256_storeu_ps(y + i, softmax_avx2_exp_of(_mm256_loadu_ps(x + i)));
    }
    if (i < count) {
        const __m256i mask = vec_avx2_mask(count - i);
        _mm256_maskstore_ps(y + i, mask, softmax_avx2_exp_of(_mm256_maskload_ps(x + i, mask)));
    }
}

#endif
