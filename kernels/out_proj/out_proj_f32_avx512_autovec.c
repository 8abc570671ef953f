/// out_proj as the compiler vectorises it at the AVX-512 level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: proj_autovec.inl.
#define GEMM_ROWS 12
#define GEMM_COLS 32
#include "proj_autovec.inl"

const struct mha_kernel out_proj_f32_avx512_autovec = {
    .name = "out_proj_f32_avx512_autovec",
    .op = "out_proj",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed w, blocks of 12 x 32",
    .run = {.out_proj = run},
    .pack = {.out_proj = pack},
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
