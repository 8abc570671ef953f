/// sdpa of bf16 at the AVX-512 level: blocks of 48 queries by 512 keys, both products by the
/// register tile 6 x 64, exp2 by a table of 32 and a quadratic (1.82 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_avx512.h for the products,
/// 13 of 32 in the loop of the exponentials. Widening: widen_avx512.h.
#include "sdpa/sdpa_avx512.h"

#define SDPA_TYPE WIDEN_BF16
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_bf16_avx512_widen_flash_6x64 = {
    .name = "sdpa_bf16_avx512_widen_flash_6x64",
    .op = "sdpa",
    .dtype = "bf16",
    .isa = "avx512",
    .tag = "widen_flash_6x64",
    .summary = "widened, online softmax over blocks of 48 x 512, register tile 6 x 64",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = SDPA_NR,
};
