/// pv at the AVX-512 level: V packed in panels of 64 columns, register tile 6 x 64.
///
/// Results pass the caches where every row begins a cache line: a tile ends by writing two dozen at
/// once, which would be fetched to be overwritten.
///
/// Algorithm, error bound and tails: pv_packed.inl; registers: gemm_avx512.h.
#include "dots_avx512.h"
#include "gemm_avx512.h"

#define PV_TILE gemm_avx512_tile_next
#define PV_TILE_LAST gemm_avx512_tile_next_stream
#define PV_FENCE _mm_sfence
#define PV_TILE_ROW gemm_avx512_tile_row
#define PV_ROWS gemm_avx512_rows
#define PV_MR GEMM_AVX512_MR
#define PV_NR GEMM_AVX512_NR
#define PV_PACK gemm_avx512_pack
#define PV_WIDEN widen_avx512_rows
#define PV_TYPE WIDEN_F32
#include "pv_packed.inl"

const struct mha_kernel pv_f32_avx512_nt_6x64 = {
    .name = "pv_f32_avx512_nt_6x64",
    .op = "pv",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt_6x64",
    .summary = "packed V, register tile 6 x 64, streaming stores; V as it is for one query",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = PV_NR,
};
