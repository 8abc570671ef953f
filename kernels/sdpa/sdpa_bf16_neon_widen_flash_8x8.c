/// sdpa of bf16 at the NEON level: blocks of 96 queries by 256 keys, both products by the register
/// tile 8 x 8, exp2 by a polynomial of degree 5 (2.06 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_neon.h for the products, 16
/// of 32 in the loop of the exponentials. Widening: widen_neon.h.
#include "sdpa/sdpa_neon.h"

#define SDPA_TYPE WIDEN_BF16
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_bf16_neon_widen_flash_8x8 = {
    .name = "sdpa_bf16_neon_widen_flash_8x8",
    .op = "sdpa",
    .dtype = "bf16",
    .isa = "neon",
    .tag = "widen_flash_8x8",
    .summary = "widened, online softmax over blocks of 96 x 256, register tile 8 x 8",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = SDPA_MR,
    .step = SDPA_NR,
};
