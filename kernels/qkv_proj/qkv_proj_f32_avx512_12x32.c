/// qkv_proj at the AVX-512 level: w packed in panels of 32 columns, register tile 12 x 32.
///
/// Algorithm, error bound and tails: proj_packed.inl; registers: gemm_avx512.h.
#include "gemm_avx512.h"

#define PROJ_TILE gemm_avx512_tile
#define PROJ_ROWS gemm_avx512_rows
#define PROJ_MR GEMM_AVX512_MR
#define PROJ_NR GEMM_AVX512_NR
#define PROJ_PACK gemm_avx512_pack
#include "proj_packed.inl"

const struct mha_kernel qkv_proj_f32_avx512_12x32 = {
    .name = "qkv_proj_f32_avx512_12x32",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "12x32",
    .summary = "packed w, register tile 12 x 32",
    .run = {.qkv_proj = run},
    .pack = {.qkv_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = PROJ_MR,
    .step = PROJ_NR,
};
