/// What sdpa_blocked.inl is made of at the AVX2 level, whatever the type of Q, K and V.
#ifndef MHA_SDPA_AVX2_H
#define MHA_SDPA_AVX2_H

#include "dots_avx2.h"
#include "gemm_avx2.h"

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

#define SDPA_TILE gemm_avx2_tile
#define SDPA_TILE_STAIRS gemm_avx2_tile_stairs
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
