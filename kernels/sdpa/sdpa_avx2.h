/// What sdpa_blocked.inl is made of at the AVX2 level, whatever the type of Q, K and V.
#ifndef MHA_SDPA_AVX2_H
#define MHA_SDPA_AVX2_H

#include "gemm_avx2.h"
#include "lanes_avx2.h"

static inline lanes lanes_max(lanes a, lanes b) {
    return _mm256_max_ps(a, b);
}

static inline lanes lanes_keep(lanes v, size_t n, lanes fill) {
    const __m256i mask = vec_avx2_mask(n < LANES ? n : LANES);
    return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(mask));
}

static inline lanes lanes_exp2(lanes d) {
    return vec_avx2_exp2(d);
}

static inline float lanes_reduce_max(lanes v) {
    return vec_avx2_reduce_max(v);
}

static inline float lanes_reduce_add(lanes v) {
    return vec_avx2_reduce_add(v);
}

static inline void lanes_store_sums(float *p, const lanes v[8], float factor) {
    // Sums of neighbours, twice: quarter i of the result is of v[i] in each half.
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    const __m256 sums =
        _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    _mm256_storeu_ps(p, _mm256_mul_ps(sums, _mm256_set1_ps(factor)));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_avx2_load(type, p, index)
                      : widen_avx2_tail(type, p, index, n, vec_avx2_mask(n));
}

#define SDPA_TILE gemm_avx2_tile
#define SDPA_TILE_ROW gemm_avx2_tile_row
#define SDPA_ROWS gemm_avx2_rows
#define SDPA_MR GEMM_AVX2_MR
#define SDPA_NR GEMM_AVX2_NR
#define SDPA_PACK_TRANSPOSED gemm_avx2_pack_transposed
#define SDPA_PACK gemm_avx2_pack
#define SDPA_WIDEN widen_avx2_rows
#define SDPA_QUERIES 96
#define SDPA_KEYS 256

#endif
