/// copy_f32, NEON: the rate of 128-bit loads and stores, 8 per round. Bit-exact.
/// The stores are brought to alignment: one that crosses a cache line costs more than such a load.
/// Tail: as for any row, see move_neon.h. Registers: 8 of 32.
#include <stdint.h>

#include "mha_kernel.h"
#include "move_neon.h"

enum { LANES = 4 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const float *x = args->x;
    const size_t offset = (0 - (uintptr_t)args->y) / sizeof(float) % LANES;
    const size_t head = offset < args->count ? offset : args->count;
    move_neon_row(head, x, args->y);
    move_neon_row(args->count - head, x + head, args->y + head);
}

const struct mha_kernel copy_f32_neon_u8 = {
    .name = "copy_f32_neon_u8",
    .op = "copy",
    .dtype = "f32",
    .isa = "neon",
    .tag = "u8",
    .summary = "128-bit loads and stores, 8 at a time",
    .run = {.copy = run},
    .step = MOVE_NEON_STEP,
};
