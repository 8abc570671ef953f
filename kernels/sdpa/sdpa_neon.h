/// What sdpa_blocked.inl is made of at the NEON level, whatever the type of Q, K and V.
#ifndef MHA_SDPA_NEON_H
#define MHA_SDPA_NEON_H

#include "gemm_neon.h"
#include "lanes_neon.h"

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

static inline void lanes_store_sums(float *p, const lanes v[8], float factor) {
    const lanes low = vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3]));
    const lanes high = vpaddq_f32(vpaddq_f32(v[4], v[5]), vpaddq_f32(v[6], v[7]));
    vst1q_f32(p, vmulq_n_f32(low, factor));
    vst1q_f32(p + 4, vmulq_n_f32(high, factor));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_neon_load(type, p, index) : widen_neon_tail(type, p, index, n);
}

#define SDPA_TILE gemm_neon_tile
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
