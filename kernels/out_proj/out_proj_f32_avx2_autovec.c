/// out_proj as the compiler vectorises it at the AVX2 level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: proj_autovec.inl.
#define GEMM_ROWS 6
#define GEMM_COLS 16
#include "proj_autovec.inl"

const struct mha_kernel out_proj_f32_avx2_autovec = {
    .name = "out_proj_f32_avx2_autovec",
    .op = "out_proj",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed w, blocks of 6 x 16",
    .run = {.out_proj = run},
    .pack = {.out_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
