/// out_proj as the compiler vectorises it at the NEON level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: proj_autovec.inl.
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "proj_autovec.inl"

const struct mha_kernel out_proj_f32_neon_autovec = {
    .name = "out_proj_f32_neon_autovec",
    .op = "out_proj",
    .dtype = "f32",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed w, blocks of 8 x 8",
    .run = {.out_proj = run},
    .pack = {.out_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
