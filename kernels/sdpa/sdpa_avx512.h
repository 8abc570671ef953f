/// What sdpa_blocked.inl is made of at the AVX-512 level, whatever the type of Q, K and V.
#ifndef MHA_SDPA_AVX512_H
#define MHA_SDPA_AVX512_H

#include "dots_avx512.h"
#include "gemm_avx512.h"

static inline lanes lanes_max(lanes a, lanes b) {
    return _mm512_max_ps(a, b);
}

static inline lanes lanes_keep(lanes v, size_t n, lanes fill) {
    return _mm512_mask_mov_ps(fill, vec_avx512_mask(n < LANES ? n : LANES), v);
}

static inline lanes lanes_exp2(lanes d) {
    return vec_avx512_exp2(d);
}

static inline float lanes_reduce_max(lanes v) {
    return vec_avx512_reduce_max(v);
}

static inline float lanes_reduce_add(lanes v) {
    return vec_avx512_reduce_add(v);
}

#define SDPA_TILE gemm_avx512_tile
#define SDPA_TILE_STAIRS gemm_avx512_tile_stairs
#define SDPA_TILE_ROW gemm_avx512_tile_row
#define SDPA_ROWS gemm_avx512_rows
#define SDPA_MR GEMM_AVX512_MR
#define SDPA_NR GEMM_AVX512_NR
#define SDPA_PACK_TRANSPOSED gemm_avx512_pack_transposed
#define SDPA_PACK gemm_avx512_pack
#define SDPA_WIDEN widen_avx512_rows
// Scores, 99 KiB, stay in L2 beside the keys' K and V; long blocks of keys load and store a tile's
// sums seldom. Fewer queries would read K and V more often from what is behind L2: 24 were level
// within 2 % where these fit (2 MiB), and no better at 4096 keys.
#define SDPA_QUERIES 48
#define SDPA_KEYS 512

#endif
