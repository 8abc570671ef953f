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

/// How scores become eighths of an exponent of 2; see struct softmax_exponent.
struct softmax_avx2_exponent {
    __m256 reference;  ///< What scores are taken from where it is far.
    __m256 lowest;     ///< The score whose exponent is -127.
    __m256 origin;     ///< The eighths of a score of 0.
};

static inline struct softmax_avx2_exponent softmax_avx2_exponent_of(struct softmax_exponent e) {
    const __m256 zero = _mm256_set1_ps(VEC_AVX2_EIGHTHS), from = _mm256_set1_ps(e.from);
    // `from` is rounded to eighths here, which leaves the result alone as any rounding of it.
    const __m256 origin = e.far ? zero : _mm256_add_ps(zero, from);
    // Exact but for the product, which is off by less than 2^-6 of an exponent while |reference| is
    // at most 2^16: `lowest` gets -127's own eighth.
    const __m256 distance = _mm256_sub_ps(_mm256_set1_ps(VEC_AVX2_EIGHTHS - 127.0f), origin);
    const __m256 lowest = _mm256_mul_ps(distance, _mm256_set1_ps(VEC_LN_2));
    return (struct softmax_avx2_exponent){from, lowest, origin};
}

/// Gets the exponentials of a vector of scores: x log2(e) + from is never rounded but to its
/// eighth, k/8 = eighths - origin, and what that leaves of it, x log2(e) - k/8 + from, of which the
/// last two are multiples of 1/8 and their difference is exact.
static inline __m256 softmax_avx2_exp(__m256 x, bool far, struct softmax_avx2_exponent exponent) {
    const __m256 log2_e = _mm256_set1_ps(VEC_LOG2_E);
    const __m256 d = far ? _mm256_sub_ps(x, exponent.reference) : x;
    // vmaxps gives its second operand when either is NaN.
    const __m256 v = _mm256_max_ps(exponent.lowest, d);
    const __m256 eighths = _mm256_fmadd_ps(v, log2_e, exponent.origin);
    const __m256 r = _mm256_fmadd_ps(v, log2_e, _mm256_sub_ps(exponent.origin, eighths));
    return vec_avx2_power(eighths, r);
}

/// Stores the exponentials of x[0..8) to y and gets them.
static inline __m256 softmax_avx2_exp_vector(const float *x, float *y, bool far,
                                             struct softmax_avx2_exponent exponent) {
    const __m256 e = softmax_avx2_exp(_mm256_loadu_ps(x), far, exponent);
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
    bool far, struct softmax_avx2_exponent exponent, const float *x, float *e, size_t n,
    const float *next_x, const float *next_y) {
    enum { LANES = SOFTMAX_AVX2_LANES, STEP = 2 * LANES };
    __m256 s0 = _mm256_setzero_ps(), s1 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        _mm_prefetch((const char *)(next_x + i), _MM_HINT_T0);
        if (next_y) {
            _mm_prefetch((const char *)(next_y + i), _MM_HINT_T0);
        }
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, far, exponent));
        s1 = _mm256_add_ps(s1, softmax_avx2_exp_vector(x + i + 8, e + i + 8, far, exponent));
    }
    // The line that a causal mask's next row ends in.
    _mm_prefetch((const char *)(next_x + n), _MM_HINT_T0);
    if (i + LANES <= n) {
        s0 = _mm256_add_ps(s0, softmax_avx2_exp_vector(x + i, e + i, far, exponent));
        i += LANES;
    }
    // Not within the condition: gcc 12 would spend a register move more per vector of the loop
    // above.
    const __m256i mask = vec_avx2_mask(n - i);
    __m256 tail = _mm256_setzero_ps();
    if (i < n) {
        const __m256 v = vec_avx2_load_tail(x + i, mask, _mm256_set1_ps(-INFINITY));
        tail = softmax_avx2_exp(v, far, exponent);
        s1 = _mm256_add_ps(s1, tail);
    }
    return (struct softmax_avx2_sum){i, tail, vec_avx2_reduce_add(_mm256_add_ps(s0, s1))};
}

/// Stores 2^exponent of x[i] to e[i] for the whole vectors of x[0..n). e may be x. Next_x, and
/// next_y unless it is NULL, are fetched line by line along the way.
__attribute__((always_inline)) static inline struct softmax_avx2_sum softmax_avx2_exps(
    struct softmax_exponent exponent, const float *x, float *e, size_t n, const float *next_x,
    const float *next_y) {
    const struct softmax_avx2_exponent vectors = softmax_avx2_exponent_of(exponent);
    return exponent.far ? softmax_avx2_exps_from(true, vectors, x, e, n, next_x, next_y)
                        : softmax_avx2_exps_from(false, vectors, x, e, n, next_x, next_y);
}

/// Gets exp(x), the power of 2 that the kernels compute, with what the rounding of log2(e) leaves:
/// what it is off by is the power's own error, without that constant's, which grows with the
/// distance.
static inline __m256 softmax_avx2_exp_of(__m256 x) {
    const __m256 log2_e = _mm256_set1_ps(VEC_LOG2_E), rest = _mm256_set1_ps(VEC_LOG2_E_REST);
    const __m256 origin = _mm256_set1_ps(VEC_AVX2_EIGHTHS);
    const __m256 v = _mm256_max_ps(_mm256_set1_ps(-127.0f * VEC_LN_2), x);
    const __m256 eighths = _mm256_fmadd_ps(v, log2_e, origin);
    const __m256 r = _mm256_fmadd_ps(v, log2_e, _mm256_sub_ps(origin, eighths));
    return vec_avx2_power(eighths, _mm256_fmadd_ps(v, rest, r));
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
