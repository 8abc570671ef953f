/// pv as the compiler vectorises it at the AVX2 level: the baseline of the hand-written variants.
///
/// Algorithm, error bound and tails: pv_autovec.inl.
#define GEMM_ROWS 6
#define GEMM_COLS 16
#include "pv_autovec.inl"

const struct mha_kernel pv_f32_avx2_autovec = {
    .name = "pv_f32_avx2_autovec",
    .op = "pv",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed V, blocks of 6 x 16",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
