/// pv of f16 at the NEON level: V packed in panels of 8 columns, register tile 8 x 8.
///
/// Algorithm, error bound and tails: pv_packed.inl; registers: gemm_neon.h.
/// Widening: widen_neon.h.
#include "dots_neon.h"
#include "gemm_neon.h"

#define PV_TILE gemm_neon_tile_next
#define PV_TILE_ROW gemm_neon_tile_row
#define PV_ROWS gemm_neon_rows
#define PV_MR GEMM_NEON_MR
#define PV_NR GEMM_NEON_NR
#define PV_PACK gemm_neon_pack
#define PV_WIDEN widen_neon_rows
#define PV_TYPE WIDEN_F16
#include "pv_packed.inl"

const struct mha_kernel pv_f16_neon_widen_8x8 = {
    .name = "pv_f16_neon_widen_8x8",
    .op = "pv",
    .dtype = "f16",
    .isa = "neon",
    .tag = "widen_8x8",
    .summary = "widened, packed V, register tile 8 x 8; V as it is for one query",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = PV_MR,
    .step = PV_NR,
};
