/// pv of f16 at the AVX2 level: V packed in panels of 32 columns, register tile 3 x 32.
///
/// Algorithm, error bound and tails: pv_packed.inl; registers: gemm_avx2.h.
/// Widening: widen_avx2.h.
#include "dots_avx2.h"
#include "gemm_avx2.h"

#define PV_TILE gemm_avx2_tile_next
#define PV_TILE_ROW gemm_avx2_tile_row
#define PV_ROWS gemm_avx2_rows
#define PV_MR GEMM_AVX2_MR
#define PV_NR GEMM_AVX2_NR
#define PV_PACK gemm_avx2_pack
#define PV_WIDEN widen_avx2_rows
#define PV_TYPE WIDEN_F16
#include "pv_packed.inl"

const struct mha_kernel pv_f16_avx2_widen_3x32 = {
    .name = "pv_f16_avx2_widen_3x32",
    .op = "pv",
    .dtype = "f16",
    .isa = "avx2",
    .tag = "widen_3x32",
    .summary = "widened, packed V, register tile 3 x 32; V as it is for one query",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = PV_MR,
    .step = PV_NR,
};
