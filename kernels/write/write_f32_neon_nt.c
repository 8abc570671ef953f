/// write_f32, NEON with non-temporal store pairs (STNP).
/// Tail: plain vectors, then single lanes.
#include <arm_neon.h>

#include "mha_kernel.h"
#include "move_neon.h"
#include "vec_neon.h"

enum { LANES = 4, STEP = 4 * MOVE_NEON_PAIR };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const size_t count = args->count;
    const float32x4_t value = vdupq_n_f32(args->value);
    float *y = args->y;
    size_t i = 0;
    for (; count - i >= STEP; i += STEP) {
#pragma GCC unroll 4
        for (size_t k = 0; k < STEP; k += MOVE_NEON_PAIR) {
            move_neon_store_nt(y + i + k, value, value);
        }
    }
    for (; count - i >= LANES; i += LANES) {
        vst1q_f32(y + i, value);
    }
    vec_neon_store_tail(y + i, value, count - i);
}

const struct mha_kernel write_f32_neon_nt = {
    .name = "write_f32_neon_nt",
    .op = "write",
    .dtype = "f32",
    .isa = "neon",
    .tag = "nt",
    .summary = "128-bit non-temporal store pairs past the caches",
    .run = {.write = run},
    .step = STEP,
};
