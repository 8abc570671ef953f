/// copy_f32, NEON with non-temporal store pairs (STNP) and software prefetch: past the caches.
/// Bit-exact. Tail: as for any row, see move_neon.h. Registers: 4 of 32.
#include "mha_kernel.h"
#include "move.h"
#include "move_neon.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    move_streams(args->count, args->x, args->y, move_neon_row_nt);
}

const struct mha_kernel copy_f32_neon_nt = {
    .name = "copy_f32_neon_nt",
    .op = "copy",
    .dtype = "f32",
    .isa = "neon",
    .tag = "nt",
    .summary = "non-temporal stores past the caches, 4 places by turns, prefetch",
    .run = {.copy = run},
    .step = 2 * MOVE_NEON_PAIR,
};
