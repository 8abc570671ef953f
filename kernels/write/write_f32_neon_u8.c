/// write_f32, NEON: the rate of 128-bit stores, 8 per round, which compilers join to 4 pairs.
/// Tail: the first and the last vector overlap the aligned ones between them, which stores the same
/// value twice; single lanes below 4 elements.
#include <arm_neon.h>

#include "mha_kernel.h"
#include "vec_neon.h"

enum { LANES = 4, VECTORS = 8, STEP = LANES * VECTORS };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float32x4_t value = vdupq_n_f32(args->value);
    float *y = args->y;
    if (count < LANES) {
        vec_neon_store_tail(y, value, count);
        return;
    }
    vst1q_f32(y, value);
    // Aligned, no store crosses a cache line.
    size_t i = LANES - (uintptr_t)y / sizeof(float) % LANES;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 8
        for (size_t k = 0; k < STEP; k += LANES) {
            vst1q_f32(y + i + k, value);
        }
    }
    for (; count - i >= LANES; i += LANES) {
        vst1q_f32(y + i, value);
    }
    vst1q_f32(y + count - LANES, value);
}

const struct mha_kernel write_f32_neon_u8 = {
    .name = "write_f32_neon_u8",
    .op = "write",
    .dtype = "f32",
    .isa = "neon",
    .tag = "u8",
    .summary = "128-bit stores, 8 at a time",
    .run = {.write = run},
    .step = STEP,
};
