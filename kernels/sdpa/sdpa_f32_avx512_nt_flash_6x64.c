/// sdpa at the AVX-512 level: blocks of 48 queries by 512 keys, both products by the register tile
/// 6 x 64, exp2 by a table of 32 and a quadratic (1.82 ULP).
///
/// Results pass the caches where every row begins a cache line, in place of lines that are fetched
/// to be overwritten.
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_avx512.h for the products,
/// 13 of 32 in the loop of the exponentials.
#include "sdpa/sdpa_avx512.h"

#define SDPA_STREAM _mm512_stream_ps
#define SDPA_FENCE _mm_sfence
#define SDPA_TYPE WIDEN_F32
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_f32_avx512_nt_flash_6x64 = {
    .name = "sdpa_f32_avx512_nt_flash_6x64",
    .op = "sdpa",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt_flash_6x64",
    .summary = "online softmax over blocks of 48 x 512, register tile 6 x 64, streaming stores",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = SDPA_NR,
};
