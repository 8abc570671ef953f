/// What the AVX2 softmax kernels share: the first two of their three passes over a span, the
/// maximum, and the exponentials with their sum. How the results reach memory is the kernels' own.
#ifndef MHA_SOFTMAX_AVX2_H
#define MHA_SOFTMAX_AVX2_H

#include <math.h>

#include "softmax/softmax_rows.h"
#include "vec_avx2.h"

/// Elements of a vector; of a step of the loops that only load and store.
enum { SOFTMAX_AVX2_LANES = 8, SOFTMAX_AVX2_STEP = 4 * SOFTMAX_AVX2_LANES };

/// Gets the largest of x[0..n) in each lane, NaN left out; -inf when there is none.
static inline __m256 softmax_avx2_largest(const float *x, size_t n) {
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
    return _mm256_max_ps(_mm256_max_ps(m0, m1), _mm256_max_ps(m2, m3));
}

/// Stores exp(x[0..8) - reference) to y and gets it.
static inline __m256 softmax_avx2_exp_vector(const float *x, float *y, __m256 reference) {
    const __m256 e = vec_avx2_exp(_mm256_sub_ps(_mm256_loadu_ps(x), reference));
    _mm256_storeu_ps(y, e);
    return e;
}

/// What the last pass needs.
struct softmax_avx2_sum {
    size_t whole;  ///< Elements in whole vectors; the exponentials of these are stored.
    __m256 tail;   ///< The exponentials of the elements behind them, and zeros.
    __m256 total;  ///< The lanes' sums of all exponentials.
};

/// Gets what to scale the exponentials by.
static inline __m256 softmax_avx2_factor(__m256 total) {
    return _mm256_set1_ps(softmax_factor(vec_avx2_reduce_add(total)));
}

/// Stores exp(x[i] - the largest of the lanes) to e[i] for the whole vectors of x[0..n), n > 0. e
/// may be x. `next` is fetched line by line along the way.
__attribute__((always_inline)) static inline struct softmax_avx2_sum softmax_avx2_exps(
    __m256 largest, const float *x, float *e, size_t n, const float *next) {
    enum { LANES = SOFTMAX_AVX2_LANES, STEP = 2 * LANES };
    const __m256 reference = _mm256_set1_ps(softmax_reference(vec_avx2_reduce_max(largest)));
    __m256 s0 = _mm256_setzero_ps(), s1 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        _mm_prefetch((const char *)(next + i), _MM_HINT_T0);
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, reference));
        s1 = _mm256_add_ps(s1, softmax_avx2_exp_vector(x + i + 8, e + i + 8, reference));
    }
    if (i + LANES <= n) {
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, reference));
        i += LANES;
    }
    // Not within the condition: gcc 12 would spend a register move more per vector of the loop
    // above.
    const __m256i mask = vec_avx2_mask(n - i);
    __m256 tail = _mm256_setzero_ps();
    if (i < n) {
        const __m256 v = vec_avx2_load_tail(x + i, mask, _mm256_set1_ps(-INFINITY));
        tail = vec_avx2_exp(_mm256_sub_ps(v, reference));
        s1 = _mm256_add_ps(s1, tail);
    }
    return (struct softmax_avx2_sum){i, tail, _mm256_add_ps(s0, s1)};
}

/// The exponential alone, for those who check it.
static void softmax_avx2_exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX2_LANES <= count; i += SOFTMAX_AVX2_LANES) {
        _mm256_storeu_ps(y + i, vec_avx2_exp(_mm256_loadu_ps(x + i)));
    }
    if (i < count) {
        const __m256i mask = vec_avx2_mask(count - i);
        _mm256_maskstore_ps(y + i, mask, vec_avx2_exp(_mm256_maskload_ps(x + i, mask)));
    }
}

#endif
