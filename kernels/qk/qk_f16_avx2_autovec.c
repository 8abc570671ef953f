/// qk of f16 as the compiler vectorises it at the AVX2 level: the baseline of the hand-written
/// variants.
///
/// Algorithm, error bound and tails: qk_autovec.inl.
#include "widen.h"

#define GEMM_ELEMENT uint16_t
#define GEMM_LOAD(x) widen_f16(x)
#define GEMM_ROWS 6
#define GEMM_COLS 16
#include "qk_autovec.inl"

const struct mha_kernel qk_f16_avx2_autovec = {
    .name = "qk_f16_avx2_autovec",
    .op = "qk",
    .dtype = "f16",
    .isa = "avx2",
    .tag = "autovec",
    .summary = "C for the vectoriser: widened, packed K, blocks of 6 x 16",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_ROWS,
    .step = GEMM_COLS,
};
