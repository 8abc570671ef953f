/// Static inline helpers of the AVX-512 level (F + BW + DQ + VL), shared by the kernels of several
/// ops.
#ifndef MHA_VEC_AVX512_H
#define MHA_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "vec.h"

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

/// Computes 2^d, or 2^(d + *below) with `below` smaller than a rounding of d, for d <= 1, -inf
/// (exactly 0) or NaN (NaN). `below` is a constant NULL, or is not, where this is inlined.
__attribute__((always_inline)) static inline __m512 vec_avx512_power(__m512 d,
                                                                     const __m512 *below) {
    // 2^((j + 1/2)/32): r then lies around the middle of its interval.
    const __m512 table_lo =
        _mm512_setr_ps(0x1.02c9a4p+0f, 0x1.087452p+0f, 0x1.0e3ec4p+0f, 0x1.1429aap+0f,
                       0x1.1a35bep+0f, 0x1.2063b8p+0f, 0x1.26b456p+0f, 0x1.2d285ap+0f,  //
                       0x1.33c08cp+0f, 0x1.3a7db4p+0f, 0x1.4160a2p+0f, 0x1.486a2cp+0f,
                       0x1.4f9b28p+0f, 0x1.56f474p+0f, 0x1.5e76f2p+0f, 0x1.662388p+0f);
    const __m512 table_hi =
        _mm512_setr_ps(0x1.6dfb24p+0f, 0x1.75feb6p+0f, 0x1.7e2f34p+0f, 0x1.868d9ap+0f,
                       0x1.8f1aeap+0f, 0x1.97d82ap+0f, 0x1.a0c668p+0f, 0x1.a9e6b6p+0f,  //
                       0x1.b33a2cp+0f, 0x1.bcc1eap+0f, 0x1.c67f12p+0f, 0x1.d072d4p+0f,
                       0x1.da9e60p+0f, 0x1.e502eep+0f, 0x1.efa1bep+0f, 0x1.fa7c18p+0f);
    // 1.5 * 2^18: adding it, rounded down, leaves the floor of 32 d in the low bits of the sum.
    const __m512 magic = _mm512_set1_ps(0x1.8p+18f);
    // 2^(r - 1/64) - 1 ~ c0 + c1 r + c2 r^2, minimax in the relative error (Remez): 0.89 * 2^-24.
    const __m512 c0 = _mm512_set1_ps(-0x1.60f984p-7f);
    const __m512 c1 = _mm512_set1_ps(0x1.5f0d8cp-1f);
    const __m512 c2 = _mm512_set1_ps(0x1.ebfbdep-3f);

    const __m512 t = _mm512_add_round_ps(d, magic, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const __m512 scale = _mm512_permutex2var_ps(table_lo, _mm512_castps_si512(t), table_hi);
    // What d has above a multiple of 2^-5, rounded down. vreduceps gets 0 of -inf.
    __m512 r = _mm512_reduce_ps(d, 5 << 4 | _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    if (below) {
        r = _mm512_add_ps(r, *below);
    }
    const __m512 w = _mm512_fmadd_ps(_mm512_fmadd_ps(c2, r, c1), r, c0);
    // vscalefps takes the floor of its second operand: the table's index has the rest.
    return _mm512_scalef_ps(_mm512_fmadd_ps(scale, w, scale), d);
}

/// Computes 2^d for d <= 1, -inf (exactly 0) or NaN (NaN). Error <= 1.82 ULP where the result is
/// normal (every f32 was tried against double).
///
/// d = k/32 + r with k an integer and 0 <= r < 1/32, so 2^d = 2^floor(d) * 2^((k mod 32)/32) * 2^r:
/// a table of 32 in two registers (the method of P. T. P. Tang, ACM TOMS 15(2), 1989, pp. 144-157)
/// and a quadratic. Seven instructions, and no lane needs a mask.
static inline __m512 vec_avx512_exp2(__m512 d) {
    return vec_avx512_power(d, NULL);
}

#endif
