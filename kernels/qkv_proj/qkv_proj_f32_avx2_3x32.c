/// qkv_proj at the AVX2 level: w packed in panels of 32 columns, register tile 3 x 32.
///
/// Algorithm, error bound and tails: proj_packed.inl; registers: gemm_avx2.h.
#include "gemm_avx2.h"

#define PROJ_TILE gemm_avx2_tile
#define PROJ_ROWS gemm_avx2_rows
#define PROJ_MR GEMM_AVX2_MR
#define PROJ_NR GEMM_AVX2_NR
#define PROJ_PACK gemm_avx2_pack
#include "proj_packed.inl"

const struct mha_kernel qkv_proj_f32_avx2_3x32 = {
    .name = "qkv_proj_f32_avx2_3x32",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "3x32",
    .summary = "packed w, register tile 3 x 32",
    .run = {.qkv_proj = run},
    .pack = {.qkv_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = PROJ_MR,
    .step = PROJ_NR,
};
