/// pv of bf16 at the AVX-512 level: V packed in panels of 64 columns, register tile 6 x 64.
///
/// Algorithm, error bound and tails: pv_packed.inl; registers: gemm_avx512.h.
/// Widening: widen_avx512.h.
#include "dots_avx512.h"
#include "gemm_avx512.h"

#define PV_TILE gemm_avx512_tile_next
#define PV_TILE_ROW gemm_avx512_tile_row
#define PV_ROWS gemm_avx512_rows
#define PV_MR GEMM_AVX512_MR
#define PV_NR GEMM_AVX512_NR
#define PV_PACK gemm_avx512_pack
#define PV_WIDEN widen_avx512_rows
#define PV_TYPE WIDEN_BF16
#include "pv_packed.inl"

const struct mha_kernel pv_bf16_avx512_widen_6x64 = {
    .name = "pv_bf16_avx512_widen_6x64",
    .op = "pv",
    .dtype = "bf16",
    .isa = "avx512",
    .tag = "widen_6x64",
    .summary = "widened, packed V, register tile 6 x 64; V as it is for one query",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = PV_NR,
};
