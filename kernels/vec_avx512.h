/// Static inline helpers of the AVX-512 level (F + BW + DQ + VL), shared by the kernels of several
/// ops.
#ifndef MHA_VEC_AVX512_H
#define MHA_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/// Makes the mask of the first `n` of 16 lanes; 0 <= n <= 16. Masked lanes are not accessed.
static inline __mmask16 vec_avx512_mask(size_t n) {
    return (__mmask16)((1u << n) - 1u);
}

/// Gets the largest lane; no lane is NaN.
static inline float vec_avx512_reduce_max(__m512 v) {
    const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}

/// Gets the sum of the lanes, by halves.
static inline float vec_avx512_reduce_add(__m512 v) {
    const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 m = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    m = _mm_add_ps(m, _mm_movehl_ps(m, m));
    m = _mm_add_ss(m, _mm_movehdup_ps(m));
    return _mm_cvtss_f32(m);
}

/// Gets 2^(k/32), k being the integer in the low bits of t.
static inline __m512 vec_avx512_power(__m512 t) {
    // Entry j: the bits of 2^(j/32), less what the low 5 bits of k << 18 will add to the mantissa.
    const __m512i table_lo =
        _mm512_setr_epi32(0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a,
                          0x3f79c3d3, 0x3f78f4f0, 0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043,
                          0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6);
    const __m512i table_hi =
        _mm512_setr_epi32(0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be,
                          0x3f76248c, 0x3f76a81e, 0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907,
                          0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3);
    const __m512i bits = _mm512_castps_si512(t);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_permutex2var_epi32(table_lo, bits, table_hi),
                                                _mm512_slli_epi32(bits, 18)));
}

/// Computes exp(d) for d <= 0, -inf (exactly 0) or NaN (NaN). Error <= 1.74 ULP (every f32
/// was tried against double); 0 where exp(d) < 2^-126.
///
/// d = k * ln2/32 + r with |r| <= ln2/64, so exp(d) = 2^(k/32) * exp(r). 2^(k/32) comes from a
/// table of 32 in two registers and an integer add to the exponent; exp(r) is a quadratic.
static inline __m512 vec_avx512_exp(__m512 d) {
    // 1.5 * 2^23: adding it leaves k, rounded to nearest, in the low bits of the sum.
    const __m512 magic = _mm512_set1_ps(0x1.8p+23f);
    const __m512 units = _mm512_set1_ps(0x1.715476p+5f);  // 32 / ln 2
    // ln2/32 in two parts, good to 2^-58 together. The product of an FMA is exact, so that r is
    // only off by its own rounding.
    const __m512 unit_hi = _mm512_set1_ps(0x1.62e430p-6f);
    const __m512 unit_lo = _mm512_set1_ps(-0x1.05c610p-34f);
    // exp(r) ~ 1 + c1 r + c2 r^2, minimax in the relative error (Remez): 0.89 * 2^-24.
    const __m512 c1 = _mm512_set1_ps(0x1.0000f6p+0f);
    const __m512 c2 = _mm512_set1_ps(0x1.fffffep-2f);
    // ln 2^-126, rounded up. "Not less than" is true of NaN, so that a NaN stays one.
    const __mmask16 normal = _mm512_cmp_ps_mask(d, _mm512_set1_ps(-0x1.5d589ep+6f), _CMP_NLT_UQ);

    const __m512 t = _mm512_fmadd_ps(d, units, magic);
    const __m512 k = _mm512_sub_ps(t, magic);
    const __m512 scale = vec_avx512_power(t);
    const __m512 r = _mm512_fnmadd_ps(k, unit_lo, _mm512_fnmadd_ps(k, unit_hi, d));
    const __m512 w = _mm512_mul_ps(_mm512_fmadd_ps(c2, r, c1), r);
    return _mm512_maskz_fmadd_ps(normal, scale, w, scale);
}

/// Computes 2^d for d <= 0, -inf (exactly 0) or NaN (NaN). Error <= 1.73 ULP (every f32 was tried
/// against double); 0 where 2^d < 2^-126. As vec_avx512_exp(), but the reduction is exact and takes
/// no multiplication.
static inline __m512 vec_avx512_exp2(__m512 d) {
    // 1.5 * 2^18: adding it leaves 32 d, rounded to nearest, in the low bits of the sum.
    const __m512 magic = _mm512_set1_ps(0x1.8p+18f);
    // The quadratic of vec_avx512_exp() in r ln 2.
    const __m512 c1 = _mm512_set1_ps(0x1.62e584p-1f);
    const __m512 c2 = _mm512_set1_ps(0x1.ebfbdep-3f);
    // "Not less than" is true of NaN, so that a NaN stays one.
    const __mmask16 normal = _mm512_cmp_ps_mask(d, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);

    const __m512 t = _mm512_add_ps(d, magic);
    const __m512 scale = vec_avx512_power(t);
    const __m512 r = _mm512_sub_ps(d, _mm512_sub_ps(t, magic));
    const __m512 w = _mm512_mul_ps(_mm512_fmadd_ps(c2, r, c1), r);
    return _mm512_maskz_fmadd_ps(normal, scale, w, scale);
}

#endif
