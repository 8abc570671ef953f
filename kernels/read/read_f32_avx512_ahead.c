/// read_f32, AVX-512: a sum with software prefetch, for levels whose latency the hardware's own
/// does not cover. Error, tail and registers: read_avx512.h.
#include "read/read_avx512.h"

/// Elements that the prefetch is ahead: 2 KiB, a DRAM latency (100 ns) at 20 GB/s of one core.
enum { AHEAD = 512 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    read_avx512_sum(args, AHEAD);
}

const struct mha_kernel read_f32_avx512_ahead = {
    .name = "read_f32_avx512_ahead",
    .op = "read",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "ahead",
    .summary = "8 sums of 16 lanes, prefetch",
    .run = {.read = run},
    .step = READ_AVX512_STEP,
};
