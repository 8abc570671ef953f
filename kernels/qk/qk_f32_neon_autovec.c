/// qk as the compiler vectorises it at the NEON level: the baseline of the hand-written variants.
///
/// Algorithm, error bound and tails: qk_autovec.inl.
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "qk_autovec.inl"

const struct mha_kernel qk_f32_neon_autovec = {
    .name = "qk_f32_neon_autovec",
    .op = "qk",
    .dtype = "f32",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed K, blocks of 8 x 8",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
