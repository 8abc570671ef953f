/// Static inline helpers of the AVX2 level (AVX2 + FMA + F16C), shared by the kernels of several
/// ops.
#ifndef MHA_VEC_AVX2_H
#define MHA_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "vec.h"

/// Makes the mask of the first `n` of 8 lanes, for vmaskmov; 0 <= n <= 8. Masked lanes are not
/// accessed, so that a tail never reads or writes past its end.
static inline __m256i vec_avx2_mask(size_t n) {
    // A window over eight ones and eight zeros.
    static const int32_t window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(window + 8 - n));
}

/// Loads the first `n` <= 8 floats as `mask` = vec_avx2_mask(n) has them; the other lanes are
/// `fill`.
static inline __m256 vec_avx2_load_tail(const float *p, __m256i mask, __m256 fill) {
    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

/// Stores the first `n` < 8 lanes, by halves and elements: vmaskmov's stores are microcoded on
/// AMD's cores.
static inline void vec_avx2_store_tail(float *p, __m256 v, size_t n) {
    __m128 part = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(p, part);
        part = _mm256_extractf128_ps(v, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, part);
        part = _mm_movehl_ps(part, part);
        p += 2;
    }
    if (n & 1) {
        _mm_store_ss(p, part);
    }
}

/// Gets the largest lane; no lane is NaN.
static inline float vec_avx2_reduce_max(__m256 v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}

/// Gets the sum of the lanes, by halves.
static inline float vec_avx2_reduce_add(__m256 v) {
    __m128 m = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_add_ps(m, _mm_movehl_ps(m, m));
    m = _mm_add_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}

/// 1.5 * 2^20: what is added to it is rounded to eighths, and its low bits count them.
#define VEC_AVX2_EIGHTHS 0x1.8p+20f

/// Computes 2^(k/8 + r) of `eighths` = VEC_AVX2_EIGHTHS + k/8 with -1016 <= k <= 8, of which the
/// lowest is 0, and |r| <= 1/16. NaN where r is, whatever k.
///
/// 2^(k/8) comes from a table of 8 and an integer add to the exponent (the method of P. T. P. Tang,
/// ACM TOMS 15(2), 1989, pp. 144-157); 2^r is a cubic. One permute in place of two more terms of a
/// polynomial takes load off the FMA units, which limit this function.
static inline __m256 vec_avx2_power(__m256 eighths, __m256 r) {
    // Entry j: the bits of 2^(j/8), less what the low 3 bits of k << 20 will add to the mantissa.
    const __m256i table = _mm256_setr_epi32(0x3f800000, 0x3f7b95c2, 0x3f7837f0, 0x3f75fed7,
                                            0x3f7504f3, 0x3f75672a, 0x3f7744fd, 0x3f7ac0c7);
    // 2^r ~ 1 + c1 r + c2 r^2 + c3 r^3, minimax in the relative error (Remez): 0.43 * 2^-24.
    const __m256 c1 = _mm256_set1_ps(0x1.62e430p-1f);
    const __m256 c2 = _mm256_set1_ps(0x1.ec0c22p-3f);
    const __m256 c3 = _mm256_set1_ps(0x1.c6b1e4p-5f);
    const __m256i k = _mm256_castps_si256(eighths);
    const __m256 scale = _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_permutevar8x32_epi32(table, k), _mm256_slli_epi32(k, 20)));
    const __m256 w = _mm256_mul_ps(_mm256_fmadd_ps(_mm256_fmadd_ps(c3, r, c2), r, c1), r);
    return _mm256_fmadd_ps(scale, w, scale);
}

/// Computes 2^d for d <= 1, -inf (exactly 0) or NaN (NaN). Error <= 1.14 ULP where the result is
/// normal, less than 2^-126 in absolute terms below (every f32 was tried against double); 0 at and
/// below -127.
static inline __m256 vec_avx2_exp2(__m256 d) {
    const __m256 origin = _mm256_set1_ps(VEC_AVX2_EIGHTHS);
    // At -127 the bits of the scale are all zero. vmaxps gives its second operand when either is
    // NaN.
    const __m256 x = _mm256_max_ps(_mm256_set1_ps(-127.0f), d);
    const __m256 eighths = _mm256_add_ps(x, origin);
    return vec_avx2_power(eighths, _mm256_sub_ps(x, _mm256_sub_ps(eighths, origin)));
}

#endif
