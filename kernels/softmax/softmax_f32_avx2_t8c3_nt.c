/// softmax, f32, AVX2 with streaming stores and prefetch of the row to come: for scores that
/// exceed the caches, where a plain store would read the line first, and a row's exponentials would
/// wait for its scores.
///
/// The passes and the exponential of softmax_f32_avx2_t8c3_u16a2, except that a row's exponentials
/// stand in the workspace, which stays in the cache, until they are scaled; also when the row is
/// computed in place. Whole cache lines of a row are streamed; its ends, and rows that hold no
/// whole line, are stored plainly. Streaming a row while the exponentials of the next are computed
/// was 2 to 5 % faster (Zen 3, from DRAM) and needed two buffers kept apart modulo 4096: not worth
/// it.
///
/// Error: 1.14 ULP of exp, and the rest as there: the same instructions. Registers: as there. Tail:
/// masked loads and stores.
#include <stdint.h>

#include "mha_kernel.h"
#include "softmax/softmax_avx2.h"
#include "softmax/softmax_rows.h"
#include "vec_avx2.h"

/// Elements of a cache line, the unit of a streaming store.
enum { LINE = 16 };

/// Elements of y[0..n) before its first whole line; n when it holds none.
static inline size_t head_of(const float *y, size_t n) {
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % LINE;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    return n < head + LINE || (uintptr_t)y % sizeof(float) != 0 ? n : head;
}

static inline void scale(const float *e, float *y, size_t n, __m256 factor) {
    size_t i = 0;
    for (; i + SOFTMAX_AVX2_LANES <= n; i += SOFTMAX_AVX2_LANES) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(e + i), factor));
    }
    if (i < n) {
        const __m256i mask = vec_avx2_mask(n - i);
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(_mm256_maskload_ps(e + i, mask), factor));
    }
}

/// y[i] = e[i] * factor for i < n, past the caches.
static inline void scale_streaming(const float *e, float *y, size_t n, __m256 factor) {
    size_t i = head_of(y, n);
    scale(e, y, i, factor);
    for (; n - i >= LINE; i += LINE) {
        _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(e + i), factor));
        _mm256_stream_ps(y + i + 8, _mm256_mul_ps(_mm256_loadu_ps(e + i + 8), factor));
    }
    scale(e + i, y + i, n - i, factor);
}

/// y[i] = 0 for i < n, past the caches.
static inline void zero_streaming(float *y, size_t n) {
    size_t i = head_of(y, n);
    memset(y, 0, i * sizeof(*y));
    for (; n - i >= LINE; i += LINE) {
        _mm256_stream_ps(y + i, _mm256_setzero_ps());
        _mm256_stream_ps(y + i + 8, _mm256_setzero_ps());
    }
    memset(y + i, 0, (n - i) * sizeof(*y));
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    float *e = workspace;
    for (size_t i = 0; i < args->rows; i++) {
        const struct softmax_row row = softmax_row_at(args, i);
        const struct softmax_row next = softmax_row_at(args, i + 1 < args->rows ? i + 1 : i);
        const struct mha_span span = row.span;
        if (span.begin < span.end) {
            const size_t n = span.end - span.begin;
            const struct softmax_avx2_sum sum =
                softmax_avx2_exps(row.x + span.begin, e, n, next.x + next.span.begin);
            _mm256_storeu_ps(e + sum.whole, sum.tail);
            scale_streaming(e, row.y + span.begin, n, sum.factor);
        }
        zero_streaming(row.y, span.begin);
        zero_streaming(row.y + span.end, args->cols - span.end);
    }
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

/// The exponentials of a row, and of the lanes behind it.
static size_t workspace_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + SOFTMAX_AVX2_LANES) * sizeof(float);
}

const struct mha_kernel softmax_f32_avx2_t8c3_nt = {
    .name = "softmax_f32_avx2_t8c3_nt",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "t8c3_nt",
    .summary = "three passes in the workspace, streaming stores past the caches, prefetch",
    .run = {.softmax = run},
    .workspace_bytes = workspace_bytes,
    .step = SOFTMAX_AVX2_STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = softmax_avx2_exp_f32,
};
