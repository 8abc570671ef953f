/// copy_f32, AVX2: the rate of 256-bit loads and stores, 8 per round. Bit-exact.
/// The stores are brought to alignment: one that crosses a cache line costs more than such a load.
/// Tail: as for any row, see move_avx2.h. Registers: 8 of 16.
#include "mha_kernel.h"
#include "move_avx2.h"

enum { LANES = 8 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const float *x = args->x;
    const size_t offset = (0 - (uintptr_t)args->y) / sizeof(float) % LANES;
    const size_t head = offset < args->count ? offset : args->count;
    move_avx2_row(head, x, args->y);
    move_avx2_row(args->count - head, x + head, args->y + head);
}

const struct mha_kernel copy_f32_avx2_u8 = {
    .name = "copy_f32_avx2_u8",
    .op = "copy",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "u8",
    .summary = "256-bit loads and stores, 8 at a time",
    .run = {.copy = run},
    .step = MOVE_AVX2_STEP,
};
