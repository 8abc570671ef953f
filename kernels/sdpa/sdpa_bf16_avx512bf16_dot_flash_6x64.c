/// sdpa of bf16 with scores by vdpbf16ps: blocks of 48 queries by 512 keys, register tile 6 x 64
/// (24 accumulators of 16 lanes) in both products, exp2 by a table of 32 and a quadratic (1.82
/// ULP).
///
/// Algorithm and tails: sdpa_blocked.inl. For the first product, Q and K are pairs of head_dim and
/// scale * log2(e) is a product at the end of each sum, as in qk_bf16_avx512bf16_dot_6x64. The
/// second one is of floats, the weights and the widened V: weights rounded to bf16 are off by 2^-9,
/// which the bound has no room for. At most two thirds of vdpbf16ps's peak can therefore be
/// reached, where it has twice the multiply-adds of vfmadd. Few queries: K and V are read where
/// they are and widened. Registers: gemm_avx512bf16.h, gemm_avx512.h; 13 of 32 in the loop of the
/// exponentials.
///
/// Error: that which harness/ops/sdpa.c derives. A score is a chain of head_dim fused multiply-adds
/// and a product by scale * log2(e), which is rounded itself: the gamma_(head_dim + 2) there.
/// vdpbf16ps takes and leaves what is below 2^-126 as zero, which costs scale times |k_i| 2^-126 or
/// |q_i| 2^-126 for an element and 2^-126 for a partial sum: the slack there has a term for each.
/// Behind the scores all is as in the other kernels.
#include "gemm_avx512bf16.h"
#include "sdpa/sdpa_avx512.h"

#define SDPA_TYPE WIDEN_BF16
#define SDPA_DEPTH(head_dim) (gemm_avx512bf16_pairs(head_dim) + 1)
#define SDPA_PREPARE gemm_avx512bf16_pair_rows
#define SDPA_PACK_KEYS gemm_avx512bf16_pack_transposed
#define SDPA_SCORE_TILE gemm_avx512bf16_scaled_tile
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_bf16_avx512bf16_dot_flash_6x64 = {
    .name = "sdpa_bf16_avx512bf16_dot_flash_6x64",
    .op = "sdpa",
    .dtype = "bf16",
    .isa = "avx512bf16",
    .tag = "dot_flash_6x64",
    .summary = "vdpbf16ps for the scores, online softmax over blocks of 48 x 512, tile 6 x 64",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = SDPA_NR,
};
