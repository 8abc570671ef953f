/// pv as the compiler vectorises it at the AVX-512 level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: pv_autovec.inl.
#define GEMM_ROWS 12
#define GEMM_COLS 32
#include "pv_autovec.inl"

const struct mha_kernel pv_f32_avx512_autovec = {
    .name = "pv_f32_avx512_autovec",
    .op = "pv",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed V, blocks of 12 x 32",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
