/// qk in C that compilers vectorise well: packed_bytes(), pack() and run(), the same source for
/// every ISA level. Includers define the block, QK_ROWS queries by QK_KEYS keys, so that its
/// accumulators fit the registers.
///
/// Algorithm: K of a kv head is packed once, transposed and multiplied by scale, into panels of
/// QK_KEYS keys. A block accumulates over head_dim in an array of constant bounds, which compilers
/// unroll, vectorise along the keys and keep in registers.
///
/// Error: scale * k is rounded once, then come head_dim multiply-adds, fused or not:
/// |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i| (Higham 2002, section 3.1).
///
/// Tail: the last block of rows overlaps the one before it and computes the same bits again; fewer
/// rows than a block go one by one. Panels are padded with zeros, and the block of a partial one
/// goes through a buffer.
#include <stddef.h>

#include "mha_kernel.h"

static size_t packed_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + QK_KEYS - 1) / QK_KEYS * QK_KEYS * shape->head_dim * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    const size_t depth = args->head_dim;
    const float scale = args->scale;
    for (size_t first = 0; first < args->seq_kv; first += QK_KEYS) {
        const size_t keys = args->seq_kv - first < QK_KEYS ? args->seq_kv - first : QK_KEYS;
        const float *restrict k = (const float *)args->k + first * args->k_stride;
        float *restrict to = (float *)packed + first * depth;
        for (size_t j = 0; j < keys; j++) {
            for (size_t i = 0; i < depth; i++) {
                to[i * QK_KEYS + j] = scale * k[j * args->k_stride + i];
            }
        }
        for (size_t j = keys; j < QK_KEYS; j++) {
            for (size_t i = 0; i < depth; i++) {
                to[i * QK_KEYS + j] = 0.0f;
            }
        }
    }
}

/// Scores of QK_ROWS queries against a whole panel.
static void block_of_rows(size_t depth, const float *restrict q, size_t q_stride,
                          const float *restrict panel, float *restrict s, size_t s_stride) {
    float sum[QK_ROWS][QK_KEYS];
    for (size_t r = 0; r < QK_ROWS; r++) {
        for (size_t j = 0; j < QK_KEYS; j++) {
            sum[r][j] = 0.0f;
        }
    }
    for (size_t i = 0; i < depth; i++) {
        for (size_t r = 0; r < QK_ROWS; r++) {
            const float query = q[r * q_stride + i];
#pragma omp simd
            for (size_t j = 0; j < QK_KEYS; j++) {
                sum[r][j] += query * panel[i * QK_KEYS + j];
            }
        }
    }
    for (size_t r = 0; r < QK_ROWS; r++) {
        for (size_t j = 0; j < QK_KEYS; j++) {
            s[r * s_stride + j] = sum[r][j];
        }
    }
}

/// Scores of one query against a whole panel.
static void one_row(size_t depth, const float *restrict q, const float *restrict panel,
                    float *restrict s) {
    float sum[QK_KEYS] = {0.0f};
    for (size_t i = 0; i < depth; i++) {
#pragma omp simd
        for (size_t j = 0; j < QK_KEYS; j++) {
            sum[j] += q[i] * panel[i * QK_KEYS + j];
        }
    }
    for (size_t j = 0; j < QK_KEYS; j++) {
        s[j] = sum[j];
    }
}

/// Scores of `rows` queries against one panel, of which `keys` are stored.
static void rows_by_panel(size_t rows, size_t keys, size_t depth, const float *q, size_t q_stride,
                          const float *panel, float *s, size_t s_stride) {
    float buffer[QK_ROWS * QK_KEYS];
    const size_t height = rows >= QK_ROWS ? QK_ROWS : 1;
    for (size_t row = 0; row < rows; row += height) {
        const size_t first = row + height > rows ? rows - height : row;
        float *to = keys == QK_KEYS ? s + first * s_stride : buffer;
        const size_t to_stride = keys == QK_KEYS ? s_stride : QK_KEYS;
        if (height == QK_ROWS) {
            block_of_rows(depth, q + first * q_stride, q_stride, panel, to, to_stride);
        } else {
            one_row(depth, q + first * q_stride, panel, to);
        }
        if (keys < QK_KEYS) {
            for (size_t r = 0; r < height; r++) {
                for (size_t j = 0; j < keys; j++) {
                    s[(first + r) * s_stride + j] = buffer[r * QK_KEYS + j];
                }
            }
        }
    }
}

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    const float *packed = args->packed;
    for (size_t h = 0; h < args->heads; h++) {
        const float *q = (const float *)args->q + h * args->q_head_stride;
        float *s = args->s + h * args->s_head_stride;
        for (size_t first = 0; first < args->seq_kv; first += QK_KEYS) {
            const size_t keys = args->seq_kv - first < QK_KEYS ? args->seq_kv - first : QK_KEYS;
            rows_by_panel(args->rows, keys, args->head_dim, q, args->q_stride,
                          packed + first * args->head_dim, s + first, args->s_stride);
        }
    }
}
