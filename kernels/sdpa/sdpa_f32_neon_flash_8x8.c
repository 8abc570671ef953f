/// sdpa at the NEON level: blocks of 96 queries by 256 keys, both products by the register tile 8 x
/// 8, exp2 by a polynomial of degree 5 (2.06 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_neon.h for the products, 16
/// of 32 in the loop of the exponentials.
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

#define SDPA_TILE gemm_neon_tile
#define SDPA_ROWS gemm_neon_rows
#define SDPA_MR GEMM_NEON_MR
#define SDPA_NR GEMM_NEON_NR
#define SDPA_PACK_TRANSPOSED gemm_neon_pack_transposed
#define SDPA_PACK gemm_neon_pack
#define SDPA_QUERIES 96
#define SDPA_KEYS 256
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_f32_neon_flash_8x8 = {
    .name = "sdpa_f32_neon_flash_8x8",
    .op = "sdpa",
    .dtype = "f32",
    .isa = "neon",
    .tag = "flash_8x8",
    .summary = "online softmax over blocks of 96 x 256, register tile 8 x 8",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = SDPA_MR,
    .step = SDPA_NR,
};
