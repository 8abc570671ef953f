/// Inner loops with one fault each, for inner_loops_finds.sh: the AVX2 register tile of ROWS x 32
/// without its packer and edges. FAULT: 0 none, 1 vzeroupper, 2 a product and a sum for the
/// multiply-add, 3 a row of A that is read twice, 4 no loop.
#include <immintrin.h>
#include <stddef.h>

enum { VECTORS = 4 };

void tile(size_t depth, const float *a, size_t a_stride, const float *panel, float *c);

void tile(size_t depth, const float *a, size_t a_stride, const float *panel, float *c) {
    __m256 sum[ROWS][VECTORS];
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++) {
            sum[r][v] = _mm256_setzero_ps();
        }
    }
#if FAULT == 4
    (void)depth;
#else
    for (size_t p = 0; p < depth; p++)
#endif
    {
        __m256 x[ROWS];
#pragma GCC unroll 8
        for (size_t r = 0; r < ROWS; r++) {
            x[r] = _mm256_broadcast_ss(a + r * a_stride);
        }
#if FAULT == 3
        x[0] = _mm256_add_ps(x[0], _mm256_broadcast_ss(a + 1));
#endif
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++) {
            const __m256 b = _mm256_load_ps(panel + v * 8);
#pragma GCC unroll 8
            for (size_t r = 0; r < ROWS; r++) {
#if FAULT == 2
                sum[r][v] = _mm256_add_ps(_mm256_mul_ps(x[r], b), sum[r][v]);
#else
                sum[r][v] = _mm256_fmadd_ps(x[r], b, sum[r][v]);
#endif
            }
        }
#if FAULT == 1
        __asm__ volatile("vzeroupper");
#endif
        a++;
        panel += VECTORS * 8;
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++) {
            _mm256_storeu_ps(c + (r * VECTORS + v) * 8, sum[r][v]);
        }
    }
}
