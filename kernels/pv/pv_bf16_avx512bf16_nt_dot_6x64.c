/// pv of bf16 by vdpbf16ps: V packed in panels of 64 columns, pairs of keys side by side, register
/// tile 6 x 64 (24 accumulators of 16 lanes).
///
/// Results pass the caches as pv_f32_avx512_nt_6x64's do.
///
/// Algorithm and tails: pv_packed.inl, with pairs of keys in place of widened elements; where a
/// mask parts a pair, its visible key is added alone, so that the masked one is in no product. With
/// one query V is widened. Registers: gemm_avx512bf16.h.
///
/// Error: every element is one chain of n fused multiply-adds over the n visible keys, whose
/// weights and values are as stored: |error| <= gamma_n * sum_j |p_j v_ji| (Higham 2002,
/// section 3.1). What is below 2^-126 counts as zero: |v_ji| 2^-126 or |p_j| 2^-126 for an element,
/// 2^-126 for a partial sum.
#include "dots_avx512.h"
#include "gemm_avx512bf16.h"

#define PV_TILE gemm_avx512bf16_tile_next
#define PV_TILE_LAST gemm_avx512bf16_tile_next_stream
#define PV_FENCE _mm_sfence
#define PV_TILE_ROW gemm_avx512bf16_tile_row
#define PV_ROWS gemm_avx512_rows
#define PV_MR GEMM_AVX512_MR
#define PV_NR GEMM_AVX512_NR
#define PV_PACK gemm_avx512bf16_pack
#define PV_WIDEN widen_avx512_rows
#define PV_TYPE WIDEN_BF16
#define PV_KEYS 2
#define PV_PREPARE gemm_avx512bf16_pair_rows
#define PV_SINGLE gemm_avx512bf16_single
#include "pv_packed.inl"

const struct mha_kernel pv_bf16_avx512bf16_nt_dot_6x64 = {
    .name = "pv_bf16_avx512bf16_nt_dot_6x64",
    .op = "pv",
    .dtype = "bf16",
    .isa = "avx512bf16",
    .tag = "nt_dot_6x64",
    .summary =
        "vdpbf16ps, packed V, register tile 6 x 64, streaming stores; V as it is for one query",
    .run = {.pv = run},
    .pack = {.pv = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = PV_NR,
};
