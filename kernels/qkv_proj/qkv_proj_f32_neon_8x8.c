/// qkv_proj at the NEON level: w packed in panels of 8 columns, register tile 8 x 8.
///
/// Algorithm, error bound and tails: proj_packed.inl; registers: gemm_neon.h.
#include "gemm_neon.h"

#define PROJ_TILE gemm_neon_tile
#define PROJ_ROWS gemm_neon_rows
#define PROJ_MR GEMM_NEON_MR
#define PROJ_NR GEMM_NEON_NR
#define PROJ_PACK gemm_neon_pack
#include "proj_packed.inl"

const struct mha_kernel qkv_proj_f32_neon_8x8 = {
    .name = "qkv_proj_f32_neon_8x8",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "neon",
    .tag = "8x8",
    .summary = "packed w, register tile 8 x 8",
    .run = {.qkv_proj = run},
    .pack = {.qkv_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = PROJ_MR,
    .step = PROJ_NR,
};
