/// What sdpa_blocked.inl is made of at the NEON level, whatever the type of Q, K and V.
#ifndef MHA_SDPA_NEON_H
#define MHA_SDPA_NEON_H

#include "dots_neon.h"
#include "gemm_neon.h"

/// The number of the two where one is NaN: b then, where a is.
static inline lanes lanes_max(lanes a, lanes b) {
    return vmaxnmq_f32(a, b);
}

static inline lanes lanes_keep(lanes v, size_t n, lanes fill) {
    static const uint32_t index[LANES] = {0, 1, 2, 3};
    const uint32x4_t kept = vcltq_u32(vld1q_u32(index), vdupq_n_u32(n < LANES ? (uint32_t)n : 4));
    return vbslq_f32(kept, v, fill);
}

static inline lanes lanes_exp2(lanes d) {
    return vec_neon_exp2(d);
}

static inline float lanes_reduce_max(lanes v) {
    return vmaxvq_f32(v);
}

static inline float lanes_reduce_add(lanes v) {
    return vaddvq_f32(v);
}

#define SDPA_TILE gemm_neon_tile
#define SDPA_TILE_STAIRS gemm_neon_tile_stairs
#define SDPA_TILE_ROW gemm_neon_tile_row
#define SDPA_ROWS gemm_neon_rows
#define SDPA_MR GEMM_NEON_MR
#define SDPA_NR GEMM_NEON_NR
#define SDPA_PACK_TRANSPOSED gemm_neon_pack_transposed
#define SDPA_PACK gemm_neon_pack
#define SDPA_WIDEN widen_neon_rows
#define SDPA_QUERIES 96
#define SDPA_KEYS 256

#endif
