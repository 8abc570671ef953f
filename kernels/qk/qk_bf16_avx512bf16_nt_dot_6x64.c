/// qk of bf16 by vdpbf16ps: K packed in panels of 64 keys, pairs of head_dim side by side, register
/// tile 6 x 64 (24 accumulators of 16 lanes).
///
/// Scores pass the caches where every row begins a cache line, as qk_f32_avx512_nt_6x64's do: they
/// are twice as many bytes for a product that takes half of the time.
///
/// Algorithm and tails: qk_packed.inl, with pairs in place of widened elements and scale as a
/// product at the end of each sum; with one query K is widened. Registers: gemm_avx512bf16.h.
///
/// Error: a chain of head_dim fused multiply-adds and one product: |error| <= gamma_(head_dim + 1)
/// * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1). What is below 2^-126 counts as zero:
/// |k_i| 2^-126 or |q_i| 2^-126 for an element, 2^-126 for a partial sum.
#include "dots_avx512.h"
#include "gemm_avx512bf16.h"

#define QK_TILE gemm_avx512bf16_scaled_tile_stream
#define QK_FENCE _mm_sfence
#define QK_ROWS gemm_avx512_rows
#define QK_MR GEMM_AVX512_MR
#define QK_NR GEMM_AVX512_NR
#define QK_PACK_TRANSPOSED gemm_avx512bf16_pack_transposed
#define QK_WIDEN widen_avx512_rows
#define QK_TYPE WIDEN_BF16
#define QK_DEPTH(head_dim) (gemm_avx512bf16_pairs(head_dim) + 1)
#define QK_PREPARE gemm_avx512bf16_pair_rows
#include "qk_packed.inl"

const struct mha_kernel qk_bf16_avx512bf16_nt_dot_6x64 = {
    .name = "qk_bf16_avx512bf16_nt_dot_6x64",
    .op = "qk",
    .dtype = "bf16",
    .isa = "avx512bf16",
    .tag = "nt_dot_6x64",
    .summary =
        "vdpbf16ps, packed K, register tile 6 x 64, streaming stores; K as it is for one query",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = GEMM_AVX512_TALLEST,
    .step = QK_NR,
};
