/// copy_f32, AVX2 with streaming stores and software prefetch: past the caches. Bit-exact.
/// Tail: as for any row, see move_avx2.h. Registers: 2 of 16.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx2.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    move_streams(args->count, args->x, args->y, move_avx2_row_nt);
    move_avx2_fence();
}

const struct mha_kernel copy_f32_avx2_nt = {
    .name = "copy_f32_avx2_nt",
    .op = "copy",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "nt",
    .summary = "streaming stores past the caches, 4 places by turns, prefetch",
    .run = {.copy = run},
    .step = MOVE_AVX2_LINE,
};
