/// copy_f32, NEON with non-temporal store pairs (STNP) and software prefetch: past the caches.
/// Bit-exact. Tail: as for any row, see move_neon.h. Registers: 4 of 32.
#include <stdint.h>

#include "mha_kernel.h"
#include "move_neon.h"

/// Elements that the prefetch is ahead: 1 KiB, a DRAM latency (100 ns) at 10 GB/s of one core.
enum { AHEAD = 256 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const float *x = args->x;
    size_t done = 0;
    if (args->count > AHEAD) {
        done = args->count - AHEAD;
        move_neon_row_nt(done, x, args->y, x + AHEAD);
    }
    // Nothing is left to fetch: the last elements are ahead of themselves.
    move_neon_row_nt(args->count - done, x + done, args->y + done, x + done);
}

const struct mha_kernel copy_f32_neon_nt = {
    .name = "copy_f32_neon_nt",
    .op = "copy",
    .dtype = "f32",
    .isa = "neon",
    .tag = "nt",
    .summary = "non-temporal stores past the caches, prefetch",
    .run = {.copy = run},
    .step = 2 * MOVE_NEON_PAIR,
};
