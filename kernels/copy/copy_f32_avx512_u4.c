/// copy_f32, AVX-512: the rate of 512-bit loads and stores, 4 per round. Bit-exact.
/// The stores are brought to alignment: one that crosses a cache line costs more than such a load.
/// Tail: as for any row, see move_avx512.h. Registers: 4 of 32.
#include "mha_kernel.h"
#include "move_avx512.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const float *x = args->x;
    const size_t offset = (0 - (uintptr_t)args->y) / sizeof(float) % MOVE_AVX512_LINE;
    const size_t head = offset < args->count ? offset : args->count;
    move_avx512_part(head, x, args->y);
    move_avx512_row(args->count - head, x + head, args->y + head);
}

const struct mha_kernel copy_f32_avx512_u4 = {
    .name = "copy_f32_avx512_u4",
    .op = "copy",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "u4",
    .summary = "512-bit loads and stores, 4 at a time",
    .run = {.copy = run},
    .step = MOVE_AVX512_STEP,
};
