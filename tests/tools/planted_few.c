/// Scores of two queries with two keys at a time, for inner_loops_finds.sh. FAULT: 0 none, 1 a key
/// that each multiply-add loads anew.
#include <immintrin.h>
#include <stddef.h>

void dots_2(size_t depth, const float *q, size_t q_stride, const float *k, size_t k_stride,
            float *s);

void dots_2(size_t depth, const float *q, size_t q_stride, const float *k, size_t k_stride,
            float *s) {
    __m256 sum[2][2] = {{_mm256_setzero_ps(), _mm256_setzero_ps()},
                        {_mm256_setzero_ps(), _mm256_setzero_ps()}};
    for (size_t p = 0; p < depth; p += 8) {
        __m256 v[2];
#pragma GCC unroll 2
        for (size_t r = 0; r < 2; r++) {
            v[r] = _mm256_loadu_ps(q + r * q_stride + p);
            __asm__("" : "+x"(v[r]));
        }
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; j++) {
            const float *const key = k + j * k_stride + p;
            __m256 y = _mm256_loadu_ps(key);
            __asm__("" : "+x"(y));
#pragma GCC unroll 2
            for (size_t r = 0; r < 2; r++) {
#if FAULT == 1
                __asm__("vfmadd231ps %2, %1, %0"
                        : "+x"(sum[r][j])
                        : "x"(v[r]), "m"(*(const __m256_u *)key));
#else
                sum[r][j] = _mm256_fmadd_ps(v[r], y, sum[r][j]);
#endif
            }
        }
    }
#pragma GCC unroll 2
    for (size_t r = 0; r < 2; r++) {
        _mm256_storeu_ps(s + r * 16, sum[r][0]);
        _mm256_storeu_ps(s + r * 16 + 8, sum[r][1]);
    }
}
