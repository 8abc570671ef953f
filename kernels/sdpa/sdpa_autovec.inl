/// sdpa in C that compilers vectorise well: packed_bytes(), workspace_bytes(), pack() and run(),
/// the same source for every ISA level. Includers define the block of a product, GEMM_ROWS by
/// GEMM_COLS.
///
/// Algorithm: that of sdpa_blocked.inl without its refinements: K (transposed and multiplied by
/// scale) and V are packed once per kv head; a block of queries takes one block of keys after the
/// other, with the online softmax in between. Under a mask whole blocks of keys that nobody sees
/// are left out. Rows with the same visible keys in a block share its product with V, the others go
/// one by one. bf16 and f16 (GEMM_ELEMENT, GEMM_LOAD) become floats on the way: K and V when they
/// are packed, a block of Q before its products.
///
/// Error: that which harness/ops/sdpa.c derives, at 2.00 ULP of exp. Tail: gemm_autovec.inl.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "gemm_autovec.inl"
#include "mha_kernel.h"
#include "sdpa/sdpa_bias.h"
#include "softmax/softmax_rows.h"
#include "vec_autovec.h"

/// Queries and keys of a block: scores, K and V of it stay in L2.
enum { QUERIES = 48, KEYS = 128 };

static size_t padded(size_t head_dim) {
    return gemm_packed_count(1, head_dim, GEMM_COLS);
}

static size_t packed_bytes(const struct mha_shape *shape) {
    return (gemm_packed_count(shape->head_dim, shape->seq_kv, GEMM_COLS) +
            gemm_packed_count(shape->seq_kv, shape->head_dim, GEMM_COLS)) *
           sizeof(float);
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    const size_t room = GEMM_NARROW ? QUERIES * widen_stride(shape->head_dim) : 0;
    return (QUERIES * (KEYS + padded(shape->head_dim) + 2) + SDPA_T5_ENTRIES + room) *
           sizeof(float);
}

static void pack(const struct mha_sdpa_args *args, void *packed) {
    float *const k = packed;
    float *const v = k + gemm_packed_count(args->head_dim, args->seq_kv, GEMM_COLS);
    gemm_autovec_pack_transposed(args->k, args->k_stride, args->seq_kv, args->head_dim, args->scale,
                                 k);
    gemm_autovec_pack(args->v, args->v_stride, args->head_dim, args->seq_kv, v);
}

/// The pieces of the workspace.
struct block {
    size_t width;    ///< Row length of sums: head_dim in whole panels.
    float *s;        ///< [QUERIES][KEYS]
    float *sums;     ///< [QUERIES][width]
    float *largest;  ///< [QUERIES] largest score so far.
    float *total;    ///< [QUERIES] sum of the exponentials.
    float *t5;       ///< [SDPA_T5_ENTRIES]
    float *room;     ///< [QUERIES][q_stride] where Q is widened.
    const float *q;  ///< The queries of the block.
    size_t q_stride;
};

/// The part of a row's visible keys that lies in the block from `first` on, counted from there.
static struct mha_span span_of(const struct mha_sdpa_args *args, size_t row, size_t first,
                               size_t keys) {
    struct mha_span span = mha_row_span(&args->mask, args->first_row + row);
    span.begin = span.begin > first ? span.begin - first : 0;
    span.end = span.end > first ? span.end - first : 0;
    span.begin = span.begin < keys ? span.begin : keys;
    span.end = span.end < keys ? span.end : keys;
    return span;
}

static void add_bias(const struct mha_bias *bias, size_t head, ptrdiff_t distance, size_t n,
                     const float *t5, float *restrict s) {
    if (bias->kind == MHA_BIAS_ALIBI) {
        const float slope = bias->slopes[head];
#pragma omp simd
        for (size_t j = 0; j < n; j++) {
            s[j] -= slope * fabsf((float)((int32_t)distance + (int32_t)j));
        }
    } else if (bias->kind == MHA_BIAS_T5) {
        for (size_t j = 0; j < n; j++) {
            s[j] += *sdpa_t5_at(t5, distance + (ptrdiff_t)j);
        }
    }
}

/// Makes exponentials of one row's n scores, and brings what it has summed to their reference.
static void weights_of(float *restrict s, size_t n, float *restrict sums, size_t width,
                       float *largest, float *total) {
    const float now = vec_autovec_largest(s, n);
    if (now > *largest) {
        const float factor = vec_autovec_exp(*largest - now);
#pragma omp simd
        for (size_t i = 0; i < width; i++) {
            sums[i] *= factor;
        }
        *total *= factor;
        *largest = now;
    }
    const float reference = softmax_reference(*largest);
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        const float e = vec_autovec_exp(s[j] - reference);
        s[j] = e;
        sum += e;
    }
    *total += sum;
}

/// Adds the weights of rows [row, row + rows), which see the keys of `span`, times their values.
static void add_values(const struct mha_sdpa_args *args, const struct block *b, size_t row,
                       size_t rows, struct mha_span span, size_t first) {
    const float *const v =
        (const float *)args->packed + gemm_packed_count(args->head_dim, args->seq_kv, GEMM_COLS);
    for (size_t col = 0; span.begin < span.end && col < b->width; col += GEMM_COLS) {
        gemm_rows_by_panel(rows, GEMM_COLS, span.end - span.begin, b->s + row * KEYS + span.begin,
                           KEYS, v + col * args->seq_kv + (first + span.begin) * GEMM_COLS, true,
                           b->sums + row * b->width + col, b->width);
    }
}

/// One block of keys for the queries [top, top + rows) of a head.
static void keys_of(const struct mha_sdpa_args *args, const struct block *b, size_t head,
                    size_t top, size_t rows, size_t first, size_t keys) {
    for (size_t j = 0; j < keys; j += GEMM_COLS) {
        gemm_rows_by_panel(rows, GEMM_COLS, args->head_dim, b->q, b->q_stride,
                           (const float *)args->packed + (first + j) * args->head_dim, false,
                           b->s + j, KEYS);
    }
    for (size_t r = 0; r < rows; r++) {
        const struct mha_span span = span_of(args, top + r, first, keys);
        if (span.begin < span.end) {
            float *s = b->s + r * KEYS + span.begin;
            const size_t n = span.end - span.begin;
            add_bias(&args->bias, head,
                     sdpa_distance(&args->bias, args->first_row + top + r, first + span.begin), n,
                     b->t5, s);
            weights_of(s, n, b->sums + r * b->width, b->width, &b->largest[r], &b->total[r]);
        }
    }
    for (size_t r = 0, same = 0; r < rows; r += same) {
        const struct mha_span span = span_of(args, top + r, first, keys);
        for (same = 1; r + same < rows; same++) {
            const struct mha_span next = span_of(args, top + r + same, first, keys);
            if (next.begin != span.begin || next.end != span.end) {
                break;
            }
        }
        add_values(args, b, r, same, span, first);
    }
}

static void queries_of(const struct mha_sdpa_args *args, struct block *b, size_t head, size_t top,
                       size_t rows) {
    const GEMM_ELEMENT *q =
        (const GEMM_ELEMENT *)args->q + head * args->q_head_stride + top * args->q_stride;
    if (GEMM_NARROW) {
        gemm_autovec_widen(rows, args->head_dim, q, args->q_stride, b->room, b->q_stride);
    }
    b->q = GEMM_NARROW ? b->room : (const void *)q;
    memset(b->sums, 0, rows * b->width * sizeof(*b->sums));
    for (size_t r = 0; r < rows; r++) {
        b->largest[r] = -INFINITY;
        b->total[r] = 0.0f;
    }
    // Spans move forwards from row to row: the first one begins first, the last one ends last.
    const size_t begin = span_of(args, top, 0, args->seq_kv).begin;
    const size_t end = span_of(args, top + rows - 1, 0, args->seq_kv).end;
    for (size_t first = begin / KEYS * KEYS; first < end; first += KEYS) {
        keys_of(args, b, head, top, rows, first, end - first < KEYS ? end - first : KEYS);
    }
    for (size_t r = 0; r < rows; r++) {
        const float *restrict sums = b->sums + r * b->width;
        float *restrict o = args->o + head * args->o_head_stride + (top + r) * args->o_stride;
        if (b->total[r] == 0.0f) {
            memset(o, 0, args->head_dim * sizeof(*o));
            continue;
        }
        const float factor = 1.0f / b->total[r];
#pragma omp simd
        for (size_t i = 0; i < args->head_dim; i++) {
            o[i] = sums[i] * factor;
        }
    }
}

static void run(const struct mha_sdpa_args *args, void *workspace) {
    struct block b = {.width = padded(args->head_dim), .s = workspace};
    b.sums = b.s + QUERIES * KEYS;
    b.largest = b.sums + QUERIES * b.width;
    b.total = b.largest + QUERIES;
    b.t5 = b.total + QUERIES;
    b.room = b.t5 + SDPA_T5_ENTRIES;
    b.q_stride = GEMM_NARROW ? widen_stride(args->head_dim) : args->q_stride;
    for (size_t h = 0; h < args->heads; h++) {
        if (args->bias.kind == MHA_BIAS_T5) {
            sdpa_t5_by_distance(&args->bias, h, 1.0f, b.t5);
        }
        for (size_t top = 0; top < args->rows; top += QUERIES) {
            const size_t left = args->rows - top;
            queries_of(args, &b, h, top, left < QUERIES ? left : QUERIES);
        }
    }
}
