/// sdpa of f16 as the compiler vectorises it at the NEON level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: sdpa_autovec.inl.
#include "widen.h"

#define GEMM_ELEMENT uint16_t
#define GEMM_LOAD(x) widen_f16(x)
#define GEMM_ROWS 8
#define GEMM_COLS 8
#include "sdpa_autovec.inl"

const struct mha_kernel sdpa_f16_neon_autovec = {
    .name = "sdpa_f16_neon_autovec",
    .op = "sdpa",
    .dtype = "f16",
    .isa = "neon",
    .tag = "autovec",
    .summary = "C for the vectoriser: widened, online softmax over blocks of 48 x 128",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
