/// write_f32, AVX-512: the rate of 512-bit stores, 8 per round so that loop control costs nothing.
/// Tail: the first and the last vector overlap the aligned ones between them, which stores the same
/// value twice; a mask below 16 elements.
#include <immintrin.h>

#include "mha_kernel.h"
#include "vec_avx512.h"

enum { LANES = 16, VECTORS = 8, STEP = LANES * VECTORS };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const __m512 value = _mm512_set1_ps(args->value);
    float *y = args->y;
    if (count < LANES) {
        _mm512_mask_storeu_ps(y, vec_avx512_mask(count), value);
        return;
    }
    _mm512_storeu_ps(y, value);
    // Aligned, no store crosses a cache line.
    size_t i = LANES - (uintptr_t)y / sizeof(float) % LANES;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k += LANES) {
            _mm512_storeu_ps(y + i + k, value);
        }
    }
    for (; count - i >= LANES; i += LANES) {
        _mm512_storeu_ps(y + i, value);
    }
    _mm512_storeu_ps(y + count - LANES, value);
}

const struct mha_kernel write_f32_avx512_u8 = {
    .name = "write_f32_avx512_u8",
    .op = "write",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "u8",
    .summary = "512-bit stores, 8 at a time",
    .run = {.write = run},
    .step = STEP,
};
