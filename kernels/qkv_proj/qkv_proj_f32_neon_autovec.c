/// qkv_proj as the compiler vectorises it at the NEON level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: proj_autovec.inl.
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "proj_autovec.inl"

const struct mha_kernel qkv_proj_f32_neon_autovec = {
    .name = "qkv_proj_f32_neon_autovec",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed w, blocks of 8 x 8",
    .run = {.qkv_proj = run},
    .pack = {.qkv_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
