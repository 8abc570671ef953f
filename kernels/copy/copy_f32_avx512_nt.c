/// copy_f32, AVX-512 with streaming stores and software prefetch: past the caches. Bit-exact.
/// Tail: as for any row, see move_avx512.h. Registers: 1 of 32.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx512.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    move_streams(args->count, args->x, args->y, move_avx512_row_nt);
    move_avx512_fence();
}

const struct mha_kernel copy_f32_avx512_nt = {
    .name = "copy_f32_avx512_nt",
    .op = "copy",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt",
    .summary = "streaming stores past the caches, 4 places by turns, prefetch",
    .run = {.copy = run},
    .step = MOVE_AVX512_LINE,
};
