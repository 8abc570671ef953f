/// write_f32, AVX-512 with streaming stores, which spare the read of a line before it is written.
/// Tail: whole lines are streamed; the ends are stored under a mask.
#include <immintrin.h>

#include "mha_kernel.h"
#include "vec_avx512.h"

// One vector is one cache line.
enum { LANES = 16, STEP = 4 * LANES };

static void write_plain(size_t n, __m512 value, float *y) {
    size_t i = 0;
    for (; n - i >= LANES; i += LANES) {
        _mm512_storeu_ps(y + i, value);
    }
    _mm512_mask_storeu_ps(y + i, vec_avx512_mask(n - i), value);
}

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const __m512 value = _mm512_set1_ps(args->value);
    float *y = args->y;
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % LANES;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    if (count < head + LANES || (uintptr_t)y % sizeof(float) != 0) {
        write_plain(count, value, y);
        return;
    }
    write_plain(head, value, y);
    size_t i = head;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 4
        for (size_t k = 0; k < STEP; k += LANES) {
            _mm512_stream_ps(y + i + k, value);
        }
    }
    for (; count - i >= LANES; i += LANES) {
        _mm512_stream_ps(y + i, value);
    }
    write_plain(count - i, value, y + i);
    // Streaming stores are ordered by nothing else.
    _mm_sfence();
}

const struct mha_kernel write_f32_avx512_nt = {
    .name = "write_f32_avx512_nt",
    .op = "write",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt",
    .summary = "512-bit streaming stores past the caches",
    .run = {.write = run},
    .step = STEP,
};
