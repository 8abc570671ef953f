/// qk in C that compilers vectorise well: packed_bytes(), pack() and run(), the same source for
/// every ISA level. Includers define the block, GEMM_ROWS queries by GEMM_COLS keys.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// GEMM_COLS keys; blocks and tails: gemm_autovec.inl. With one query per head (decoding) K is read
/// as it is, a dot product per score. bf16 and f16 (GEMM_ELEMENT, GEMM_LOAD) become floats on the
/// way, a block of Q before its products.
///
/// Error: scale * k is rounded once, then come head_dim multiply-adds, fused or not:
/// |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1).
#include <stddef.h>

#include "gemm_autovec.inl"
#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return shape->seq_q == 1
               ? 0
               : gemm_packed_count(shape->head_dim, shape->seq_kv, GEMM_COLS) * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    gemm_autovec_pack_transposed(args->k, args->k_stride, args->seq_kv, args->head_dim, args->scale,
                                 packed);
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    return GEMM_NARROW ? gemm_row_block(GEMM_ROWS, shape->head_dim) *
                             widen_stride(shape->head_dim) * sizeof(float)
                       : 0;
}

static void dots(const struct mha_qk_args *args, const float *restrict q, float *restrict s) {
    for (size_t j = 0; j < args->seq_kv; j++) {
        const GEMM_ELEMENT *restrict k = (const GEMM_ELEMENT *)args->k + j * args->k_stride;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (size_t i = 0; i < args->head_dim; i++) {
            sum += q[i] * GEMM_LOAD(k[i]);
        }
        s[j] = args->scale * sum;
    }
}

static void run_rows(const struct mha_qk_args *args, size_t rows, const float *q, size_t q_stride,
                     float *s) {
    const float *packed = args->packed;
    for (size_t r = 0; r < rows && !packed; r++) {
        dots(args, q + r * q_stride, s + r * args->s_stride);
    }
    for (size_t first = 0; packed && first < args->seq_kv; first += GEMM_COLS) {
        const size_t keys = args->seq_kv - first < GEMM_COLS ? args->seq_kv - first : GEMM_COLS;
        gemm_rows_by_panel(rows, keys, args->head_dim, q, q_stride, packed + first * args->head_dim,
                           false, s + first, args->s_stride);
    }
}

static void run(const struct mha_qk_args *args, void *workspace) {
    const size_t block = GEMM_NARROW ? gemm_row_block(GEMM_ROWS, args->head_dim) : args->rows;
    const size_t stride = GEMM_NARROW ? widen_stride(args->head_dim) : args->q_stride;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t row = 0; row < args->rows; row += block) {
            const size_t rows = args->rows - row < block ? args->rows - row : block;
            const GEMM_ELEMENT *from =
                (const GEMM_ELEMENT *)args->q + h * args->q_head_stride + row * args->q_stride;
            float *s = args->s + h * args->s_head_stride + row * args->s_stride;
            if (GEMM_NARROW) {
                gemm_autovec_widen(rows, args->head_dim, from, args->q_stride, workspace, stride);
            }
            run_rows(args, rows, GEMM_NARROW ? workspace : (const void *)from, stride, s);
        }
    }
}
