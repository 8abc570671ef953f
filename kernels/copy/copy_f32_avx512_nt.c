/// copy_f32, AVX-512 with streaming stores and software prefetch: past the caches. Bit-exact.
/// Tail: as for any row, see move_avx512.h. Registers: 1 of 32.
#include <stdint.h>

#include "mha_kernel.h"
#include "move_avx512.h"

/// Elements that the prefetch is ahead: 1 KiB, a DRAM latency (100 ns) at 10 GB/s of one core.
enum { AHEAD = 256 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const float *x = args->x;
    size_t done = 0;
    if (args->count > AHEAD) {
        done = args->count - AHEAD;
        move_avx512_row_nt(done, x, args->y, x + AHEAD);
    }
    // Nothing is left to fetch: the last elements are ahead of themselves.
    move_avx512_row_nt(args->count - done, x + done, args->y + done, x + done);
    move_avx512_fence();
}

const struct mha_kernel copy_f32_avx512_nt = {
    .name = "copy_f32_avx512_nt",
    .op = "copy",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch",
    .run = {.copy = run},
    .step = MOVE_AVX512_LINE,
};
