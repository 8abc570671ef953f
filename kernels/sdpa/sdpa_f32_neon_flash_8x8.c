/// sdpa at the NEON level: blocks of 96 queries by 256 keys, both products by the register tile 8 x
/// 8, exp2 by a polynomial of degree 5 (2.06 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_neon.h for the products, 16
/// of 32 in the loop of the exponentials.
#include "sdpa/sdpa_neon.h"

#define SDPA_TYPE WIDEN_F32
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
