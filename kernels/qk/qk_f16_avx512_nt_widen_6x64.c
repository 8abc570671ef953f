/// qk of f16 at the AVX-512 level: K packed in panels of 64 keys, register tile 6 x 64 (24
/// accumulators of 16 lanes).
///
/// Scores pass the caches where every row begins a cache line, see qk_f32_avx512_nt_6x64.c.
///
/// Algorithm, error bound and tails: qk_packed.inl; registers: gemm_avx512.h.
/// Widening: widen_avx512.h.
#include "dots_avx512.h"
#include "gemm_avx512.h"

#define QK_TILE gemm_avx512_tile_stream
#define QK_FENCE _mm_sfence
#define QK_ROWS gemm_avx512_rows
#define QK_MR GEMM_AVX512_MR
#define QK_NR GEMM_AVX512_NR
#define QK_PACK_TRANSPOSED gemm_avx512_pack_transposed
#define QK_WIDEN widen_avx512_rows
#define QK_TYPE WIDEN_F16
#include "qk_packed.inl"

const struct mha_kernel qk_f16_avx512_nt_widen_6x64 = {
    .name = "qk_f16_avx512_nt_widen_6x64",
    .op = "qk",
    .dtype = "f16",
    .isa = "avx512",
    .tag = "nt_widen_6x64",
    .summary =
        "widened, packed K, register tile 6 x 64, streaming stores; K as it is for one query",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = QK_NR,
};
