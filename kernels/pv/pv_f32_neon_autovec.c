/// pv as the compiler vectorises it at the NEON level: the baseline of the hand-written variants.
///
/// Algorithm, error bound and tails: pv_autovec.inl.
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "pv_autovec.inl"

const struct mha_kernel pv_f32_neon_autovec = {
    .name = "pv_f32_neon_autovec",
    .op = "pv",
    .dtype = "f32",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed V, blocks of 8 x 8",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
