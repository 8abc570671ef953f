/// sdpa of f16 at the AVX2 level: blocks of 96 queries by 256 keys, both products by the register
/// tile 3 x 32, exp2 by a table of 8 and a cubic (1.14 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_avx2.h for the products, 11
/// of 16 in the loop of the exponentials. Widening: widen_avx2.h.
#include "sdpa/sdpa_avx2.h"

#define SDPA_TYPE WIDEN_F16
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_f16_avx2_widen_flash_3x32 = {
    .name = "sdpa_f16_avx2_widen_flash_3x32",
    .op = "sdpa",
    .dtype = "f16",
    .isa = "avx2",
    .tag = "widen_flash_3x32",
    .summary = "widened, online softmax over blocks of 96 x 256, register tile 3 x 32",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = SDPA_MR,
    .step = SDPA_NR,
};
