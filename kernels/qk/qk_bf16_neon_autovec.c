/// qk of bf16 as the compiler vectorises it at the NEON level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: qk_autovec.inl.
#include "widen.h"

#define GEMM_ELEMENT uint16_t
#define GEMM_LOAD(x) widen_bf16(x)
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "qk_autovec.inl"

const struct mha_kernel qk_bf16_neon_autovec = {
    .name = "qk_bf16_neon_autovec",
    .op = "qk",
    .dtype = "bf16",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: widened, packed K, blocks of 8 x 8",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
