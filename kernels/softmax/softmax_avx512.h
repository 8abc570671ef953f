/// What the AVX-512 softmax kernels share: the first two of their three passes over a span, the
/// maximum, and the exponentials with their sum. How the results reach memory is the kernels' own.
#ifndef MHA_SOFTMAX_AVX512_H
#define MHA_SOFTMAX_AVX512_H

#include <math.h>

#include "softmax/softmax_rows.h"
#include "vec_avx512.h"

/// Elements of a vector; of a step of the loops that only load and store.
enum { SOFTMAX_AVX512_LANES = 16, SOFTMAX_AVX512_STEP = 4 * SOFTMAX_AVX512_LANES };

/// Gets the largest of x[0..n) in each lane, NaN left out; -inf when there is none.
static inline __m512 softmax_avx512_largest(const float *x, size_t n) {
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
    return _mm512_max_ps(_mm512_max_ps(m0, m1), _mm512_max_ps(m2, m3));
}

/// Stores exp(x[0..16) - reference) to y and gets it.
static inline __m512 softmax_avx512_exp_vector(const float *x, float *y, __m512 reference) {
    const __m512 e = vec_avx512_exp(_mm512_sub_ps(_mm512_loadu_ps(x), reference));
    _mm512_storeu_ps(y, e);
    return e;
}

/// What the last pass needs.
struct softmax_avx512_sum {
    size_t whole;  ///< Elements in whole vectors; the exponentials of these are stored.
    __m512 tail;   ///< The exponentials of the elements behind them, and zeros.
    __m512 total;  ///< The lanes' sums of all exponentials.
};

/// Gets what to scale the exponentials by.
static inline __m512 softmax_avx512_factor(__m512 total) {
    return _mm512_set1_ps(softmax_factor(vec_avx512_reduce_add(total)));
}

/// Stores exp(x[i] - the largest of the lanes) to e[i] for the whole vectors of x[0..n), n > 0. e
/// may be x. `next` is fetched line by line along the way.
__attribute__((always_inline)) static inline struct softmax_avx512_sum softmax_avx512_exps(
    __m512 largest, const float *x, float *e, size_t n, const float *next) {
    enum { LANES = SOFTMAX_AVX512_LANES, STEP = SOFTMAX_AVX512_STEP };
    const __m512 reference = _mm512_set1_ps(softmax_reference(vec_avx512_reduce_max(largest)));
    __m512 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        _mm_prefetch((const char *)(next + i), _MM_HINT_T0);
        _mm_prefetch((const char *)(next + i + 16), _MM_HINT_T0);
        _mm_prefetch((const char *)(next + i + 32), _MM_HINT_T0);
        _mm_prefetch((const char *)(next + i + 48), _MM_HINT_T0);
        s0 = _mm512_add_ps(s0, softmax_avx512_exp_vector(x + i, e + i, reference));
        s1 = _mm512_add_ps(s1, softmax_avx512_exp_vector(x + i + 16, e + i + 16, reference));
        s2 = _mm512_add_ps(s2, softmax_avx512_exp_vector(x + i + 32, e + i + 32, reference));
        s3 = _mm512_add_ps(s3, softmax_avx512_exp_vector(x + i + 48, e + i + 48, reference));
    }
    for (; i + LANES <= n; i += LANES) {
        s0 = _mm512_add_ps(s0, softmax_avx512_exp_vector(x + i, e + i, reference));
    }
    __m512 tail = _mm512_setzero_ps();
    if (i < n) {
        const __mmask16 mask = vec_avx512_mask(n - i);
        const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), mask, x + i);
        tail = vec_avx512_exp(_mm512_sub_ps(v, reference));
        s1 = _mm512_add_ps(s1, tail);
    }
    const __m512 total = _mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3));
    return (struct softmax_avx512_sum){i, tail, total};
}

/// The exponential alone, for those who check it.
static void softmax_avx512_exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX512_LANES <= count; i += SOFTMAX_AVX512_LANES) {
        _mm512_storeu_ps(y + i, vec_avx512_exp(_mm512_loadu_ps(x + i)));
    }
    if (i < count) {
        const __mmask16 mask = vec_avx512_mask(count - i);
        _mm512_mask_storeu_ps(y + i, mask, vec_avx512_exp(_mm512_maskz_loadu_ps(mask, x + i)));
    }
}

#endif
