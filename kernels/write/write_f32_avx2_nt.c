/// write_f32, AVX2 with streaming stores, which spare the read of a line before it is written.
/// Tail: whole lines are streamed; the ends are plain stores, the last of them under a mask.
#include <immintrin.h>

#include "mha_kernel.h"
#include "vec_avx2.h"

enum { LANES = 8, LINE = 16, STEP = 4 * LINE };

static void write_plain(size_t n, __m256 value, float *y) {
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        _mm256_storeu_ps(y + i, value);
    }
    _mm256_maskstore_ps(y + i, vec_avx2_mask(n - i), value);
}

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const __m256 value = _mm256_set1_ps(args->value);
    float *y = args->y;
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % LINE;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    if (count < head + LINE || (uintptr_t)y % sizeof(float) != 0) {
        write_plain(count, value, y);
        return;
    }
    write_plain(head, value, y);
    size_t i = head;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k += LANES) {
            _mm256_stream_ps(y + i + k, value);
        }
    }
    for (; count - i >= LINE; i += LINE) {
        _mm256_stream_ps(y + i, value);
        _mm256_stream_ps(y + i + LANES, value);
    }
    write_plain(count - i, value, y + i);
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

const struct mha_kernel write_f32_avx2_nt = {
    .name = "write_f32_avx2_nt",
    .op = "write",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "nt",
    .summary = "256-bit streaming stores past the caches",
    .run = {.write = run},
    .step = STEP,
};
