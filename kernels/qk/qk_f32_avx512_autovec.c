/// qk as the compiler vectorises it at the AVX-512 level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: qk_autovec.inl.
#define GEMM_ROWS 12
#define GEMM_COLS 32
#include "qk_autovec.inl"

const struct mha_kernel qk_f32_avx512_autovec = {
    .name = "qk_f32_avx512_autovec",
    .op = "qk",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "autovec",
    .summary = "C for the vectoriser: packed K, blocks of 12 x 32",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
