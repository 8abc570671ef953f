/// qk at the AVX2 level: K packed in panels of 32 keys, register tile 3 x 32 (12 accumulators of 8
/// lanes).
///
/// Algorithm, error bound and tails: qk_packed.inl; registers: gemm_avx2.h.
#include "dots_avx2.h"
#include "gemm_avx2.h"

#define QK_TILE gemm_avx2_tile
#define QK_ROWS gemm_avx2_rows
#define QK_MR GEMM_AVX2_MR
#define QK_NR GEMM_AVX2_NR
#define QK_PACK_TRANSPOSED gemm_avx2_pack_transposed
#define QK_WIDEN widen_avx2_rows
#define QK_TYPE WIDEN_F32
#include "qk_packed.inl"

const struct mha_kernel qk_f32_avx2_3x32 = {
    .name = "qk_f32_avx2_3x32",
    .op = "qk",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "3x32",
    .summary = "packed K, register tile 3 x 32; K as it is for one query",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = QK_MR,
    .step = QK_NR,
};
