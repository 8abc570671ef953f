/// pv of bf16 as the compiler vectorises it at the NEON level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: pv_autovec.inl.
#include "widen.h"

#define GEMM_ELEMENT uint16_t
#define GEMM_LOAD(x) widen_bf16(x)
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "pv_autovec.inl"

const struct mha_kernel pv_bf16_neon_autovec = {
    .name = "pv_bf16_neon_autovec",
    .op = "pv",
    .dtype = "bf16",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: widened, packed V, blocks of 8 x 8",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
