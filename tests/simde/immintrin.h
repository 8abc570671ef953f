/// Stands in for the compiler's <immintrin.h> so that the AVX-512 kernels can be checked where no
/// AVX-512 CPU is at hand: the same sources, with every 512-bit intrinsic carried out by SIMDe
/// (libsimde-dev) or, where that lacks one, below as Intel's Intrinsics Guide defines it. Put this
/// folder first on the include path and compile with -mavx2 -mfma -mf16c -Wno-psabi, without
/// -mavx512*: the levels below are then the CPU's own. It checks results, not speed.
#ifndef MHA_TESTS_SIMDE_IMMINTRIN_H
#define MHA_TESTS_SIMDE_IMMINTRIN_H

// The types come from the compiler's own header; SIMDe's macros then hide its 512-bit functions.
#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

/// Lanes whose bit is clear are not accessed.
static inline __m512 mha_simde_mask_loadu_ps(__m512 src, __mmask16 mask, const void *p) {
    float lanes[16];
    __builtin_memcpy(lanes, &src, sizeof(lanes));
    for (size_t i = 0; i < 16; i++) {
        if ((mask >> i) & 1) {
            __builtin_memcpy(&lanes[i], (const char *)p + 4 * i, 4);
        }
    }
    __builtin_memcpy(&src, lanes, sizeof(lanes));
    return src;
}
#undef _mm512_mask_loadu_ps
#define _mm512_mask_loadu_ps(src, mask, p) mha_simde_mask_loadu_ps(src, mask, p)
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps(mask, p) mha_simde_mask_loadu_ps(simde_mm512_setzero_ps(), mask, p)

/// Lanes whose bit is clear are not accessed.
static inline __m256i mha_simde_maskz_loadu_epi16(__mmask16 mask, const void *p) {
    unsigned short lanes[16] = {0};
    for (size_t i = 0; i < 16; i++) {
        if ((mask >> i) & 1) {
            __builtin_memcpy(&lanes[i], (const char *)p + 2 * i, 2);
        }
    }
    __m256i loaded;
    __builtin_memcpy(&loaded, lanes, sizeof(loaded));
    return loaded;
}
#undef _mm256_maskz_loadu_epi16
#define _mm256_maskz_loadu_epi16(mask, p) mha_simde_maskz_loadu_epi16(mask, p)

/// Two halves by F16C.
static inline __m512 mha_simde_cvtph_ps(__m256i a) {
    __m512 wide = simde_mm512_setzero_ps();
    const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(a));
    const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1));
    __builtin_memcpy(&wide, &low, sizeof(low));
    __builtin_memcpy((char *)&wide + 32, &high, sizeof(high));
    return wide;
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps(a) mha_simde_cvtph_ps(a)

static inline __m512i mha_simde_cvtepu16_epi32(__m256i a) {
    unsigned short lanes[16];
    unsigned wide[16];
    __builtin_memcpy(lanes, &a, sizeof(lanes));
    for (size_t i = 0; i < 16; i++) {
        wide[i] = lanes[i];
    }
    __m512i widened;
    __builtin_memcpy(&widened, wide, sizeof(widened));
    return widened;
}
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32(a) mha_simde_cvtepu16_epi32(a)

/// Lanes whose bit is clear are not accessed.
static inline void mha_simde_mask_storeu_ps(void *p, __mmask16 mask, __m512 a) {
    float lanes[16];
    __builtin_memcpy(lanes, &a, sizeof(lanes));
    for (size_t i = 0; i < 16; i++) {
        if ((mask >> i) & 1) {
            __builtin_memcpy((char *)p + 4 * i, &lanes[i], 4);
        }
    }
}
#undef _mm512_mask_storeu_ps
#define _mm512_mask_storeu_ps(p, mask, a) mha_simde_mask_storeu_ps(p, mask, a)

static inline __m256 mha_simde_extractf32x8_ps(__m512 a, int index) {
    __m256 half;
    __builtin_memcpy(&half, (const char *)&a + 32 * (index & 1), sizeof(half));
    return half;
}
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(a, index) mha_simde_extractf32x8_ps(a, index)

/// A streaming store wants its address on a multiple of 64 bytes: anything else faults.
static inline void mha_simde_stream_ps(void *p, __m512 a) {
    if ((size_t)p % 64 != 0) {
        __builtin_trap();
    }
    __builtin_memcpy(p, &a, sizeof(a));
}
#undef _mm512_stream_ps
#define _mm512_stream_ps(p, a) mha_simde_stream_ps(p, a)

static inline __m512 mha_simde_zextps128_ps512(__m128 a) {
    __m512 wide = simde_mm512_setzero_ps();
    __builtin_memcpy(&wide, &a, sizeof(a));
    return wide;
}
#undef _mm512_zextps128_ps512
#define _mm512_zextps128_ps512(a) mha_simde_zextps128_ps512(a)

/// Lanes whose bit is clear are not accessed.
static inline __m128 mha_simde_maskz_loadu_ps128(__mmask8 mask, const void *p) {
    const int m = mask;
    const __m128i lanes =
        _mm_set_epi32(-((m >> 3) & 1), -((m >> 2) & 1), -((m >> 1) & 1), -(m & 1));
    return _mm_maskload_ps((const float *)p, lanes);
}
#undef _mm_maskz_loadu_ps
#define _mm_maskz_loadu_ps(mask, p) mha_simde_maskz_loadu_ps128(mask, p)

/// Halves upon halves, as the compilers do it.
static inline float mha_simde_reduce_add_ps(__m512 a) {
    float lanes[16];
    __builtin_memcpy(lanes, &a, sizeof(lanes));
    for (size_t half = 8; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}
#undef _mm512_reduce_add_ps
#define _mm512_reduce_add_ps(a) mha_simde_reduce_add_ps(a)

/// Products less c in the even lanes, plus c in the odd ones, each rounded once.
static inline __m512 mha_simde_fmaddsub_ps(__m512 a, __m512 b, __m512 c) {
    float x[16], y[16], z[16];
    __builtin_memcpy(x, &a, sizeof(x));
    __builtin_memcpy(y, &b, sizeof(y));
    __builtin_memcpy(z, &c, sizeof(z));
    for (size_t i = 0; i < 16; i++) {
        z[i] = __builtin_fmaf(x[i], y[i], i % 2 == 0 ? -z[i] : z[i]);
    }
    __builtin_memcpy(&c, z, sizeof(z));
    return c;
}
#undef _mm512_fmaddsub_ps
#define _mm512_fmaddsub_ps(a, b, c) mha_simde_fmaddsub_ps(a, b, c)

/// Two bits of the index for each lane of a group of four, the same in every group.
static inline __m512 mha_simde_permute_ps(__m512 a, int index) {
    float lanes[16], permuted[16];
    __builtin_memcpy(lanes, &a, sizeof(lanes));
    for (size_t i = 0; i < 16; i++) {
        permuted[i] = lanes[i / 4 * 4 + ((index >> (i % 4 * 2)) & 3)];
    }
    __builtin_memcpy(&a, permuted, sizeof(permuted));
    return a;
}
#undef _mm512_permute_ps
#define _mm512_permute_ps(a, index) mha_simde_permute_ps(a, index)

/// Two quarters of a, then two of b, by two bits of the index each.
static inline __m512 mha_simde_shuffle_f32x4(__m512 a, __m512 b, int index) {
    float x[16], y[16], shuffled[16];
    __builtin_memcpy(x, &a, sizeof(x));
    __builtin_memcpy(y, &b, sizeof(y));
    for (size_t i = 0; i < 16; i++) {
        shuffled[i] = (i < 8 ? x : y)[(index >> (i / 4 * 2) & 3) * 4 + i % 4];
    }
    __builtin_memcpy(&a, shuffled, sizeof(a));
    return a;
}
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, index) mha_simde_shuffle_f32x4(a, b, index)

/// A sum rounded towards -inf, the one rounding that the kernels ask for.
static inline __m512 mha_simde_add_round_ps(__m512 a, __m512 b, int rounding) {
    float x[16], y[16];
    if (rounding != (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)) {
        __builtin_trap();
    }
    __builtin_memcpy(x, &a, sizeof(x));
    __builtin_memcpy(y, &b, sizeof(y));
    for (size_t i = 0; i < 16; i++) {
        const float sum = x[i] + y[i], of_y = sum - x[i];
        // What the sum lost (Knuth's TwoSum): exact, or NaN where there is no float below.
        const float lost = (x[i] - (sum - of_y)) + (y[i] - of_y);
        x[i] = lost < 0 ? __builtin_nextafterf(sum, -__builtin_inff()) : sum;
    }
    __builtin_memcpy(&a, x, sizeof(a));
    return a;
}
#undef _mm512_add_round_ps
#define _mm512_add_round_ps(a, b, rounding) mha_simde_add_round_ps(a, b, rounding)

/// What is left above a multiple of 2^-(control >> 4), rounded down; 0 for an infinite value.
static inline __m512 mha_simde_reduce_ps(__m512 a, int control) {
    float x[16];
    if ((control & 15) != (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)) {
        __builtin_trap();
    }
    __builtin_memcpy(x, &a, sizeof(x));
    for (size_t i = 0; i < 16; i++) {
        const float units = __builtin_ldexpf(1.0f, control >> 4);
        x[i] = __builtin_isinf(x[i]) ? 0.0f : x[i] - __builtin_floorf(x[i] * units) / units;
    }
    __builtin_memcpy(&a, x, sizeof(a));
    return a;
}
#undef _mm512_reduce_ps
#define _mm512_reduce_ps(a, control) mha_simde_reduce_ps(a, control)

/// a 2^floor(b).
static inline __m512 mha_simde_scalef_ps(__m512 a, __m512 b) {
    float x[16], y[16];
    __builtin_memcpy(x, &a, sizeof(x));
    __builtin_memcpy(y, &b, sizeof(y));
    for (size_t i = 0; i < 16; i++) {
        // 2^+-1000 takes every float to infinity or to 0. A NaN passes both comparisons.
        const float most = y[i] > 1000.0f ? 1000.0f : y[i],
                    power = most < -1000.0f ? -1000.0f : most;
        x[i] =
            __builtin_isnan(power) ? power : __builtin_ldexpf(x[i], (int)__builtin_floorf(power));
    }
    __builtin_memcpy(&a, x, sizeof(a));
    return a;
}
#undef _mm512_scalef_ps
#define _mm512_scalef_ps(a, b) mha_simde_scalef_ps(a, b)

/// As Intel's SDM defines it (vol. 2C, VDPBF16PS): the odd products first, each by a fused
/// multiply-add; what is below 2^-126 counts as zero before and after.
static inline float mha_simde_flush(float x) {
    return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x;
}

static inline __m512 mha_simde_dpbf16_ps(__m512 src, __m512bh a, __m512bh b) {
    float sums[16], x, y;
    unsigned short p[32], q[32];
    __builtin_memcpy(sums, &src, sizeof(sums));
    __builtin_memcpy(p, &a, sizeof(p));
    __builtin_memcpy(q, &b, sizeof(q));
    for (size_t i = 0; i < 16; i++) {
        for (size_t odd = 2; odd-- > 0;) {
            const unsigned wide_p = (unsigned)p[2 * i + odd] << 16;
            const unsigned wide_q = (unsigned)q[2 * i + odd] << 16;
            __builtin_memcpy(&x, &wide_p, sizeof(x));
            __builtin_memcpy(&y, &wide_q, sizeof(y));
            sums[i] = mha_simde_flush(
                __builtin_fmaf(mha_simde_flush(x), mha_simde_flush(y), mha_simde_flush(sums[i])));
        }
    }
    __builtin_memcpy(&src, sums, sizeof(src));
    return src;
}
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps(src, a, b) mha_simde_dpbf16_ps(src, a, b)

#endif
