/// qkv_proj at the AVX-512 level: w packed in panels of 64 columns, register tile 6 x 64.
///
/// Algorithm, error bound and tails: proj_packed.inl; registers: gemm_avx512.h.
#include "gemm_avx512.h"

#define PROJ_TILE gemm_avx512_tile
#define PROJ_ROWS gemm_avx512_rows
#define PROJ_MR GEMM_AVX512_MR
#define PROJ_NR GEMM_AVX512_NR
#define PROJ_PACK gemm_avx512_pack
#include "proj_packed.inl"

const struct mha_kernel qkv_proj_f32_avx512_6x64 = {
    .name = "qkv_proj_f32_avx512_6x64",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "6x64",
    .summary = "packed w, register tile 6 x 64",
    .run = {.qkv_proj = run},
    .pack = {.qkv_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = PROJ_NR,
};
