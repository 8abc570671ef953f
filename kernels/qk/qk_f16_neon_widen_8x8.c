/// qk of f16 at the NEON level: K packed in panels of 8 keys, register tile 8 x 8 (16 accumulators
/// of 4 lanes).
///
/// Algorithm, error bound and tails: qk_packed.inl; registers: gemm_neon.h.
/// Widening: widen_neon.h.
#include "dots_neon.h"
#include "gemm_neon.h"

#define QK_TILE gemm_neon_tile
#define QK_ROWS gemm_neon_rows
#define QK_MR GEMM_NEON_MR
#define QK_NR GEMM_NEON_NR
#define QK_PACK_TRANSPOSED gemm_neon_pack_transposed
#define QK_WIDEN widen_neon_rows
#define QK_TYPE WIDEN_F16
#include "qk_packed.inl"

const struct mha_kernel qk_f16_neon_widen_8x8 = {
    .name = "qk_f16_neon_widen_8x8",
    .op = "qk",
    .dtype = "f16",
    .isa = "neon",
    .tag = "widen_8x8",
    .summary = "widened, packed K, register tile 8 x 8; K as it is for one query",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = QK_MR,
    .step = QK_NR,
};
