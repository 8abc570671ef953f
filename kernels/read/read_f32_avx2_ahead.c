/// read_f32, AVX2: a sum with software prefetch, for levels whose latency the hardware's own does
/// not cover. Error, tail and registers: read_avx2.h.
#include "read/read_avx2.h"

/// Elements that the prefetch is ahead: 2 KiB, a DRAM latency (100 ns) at 20 GB/s of one core.
enum { AHEAD = 512 };

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    read_avx2_sum(args, AHEAD);
}

const struct mha_kernel read_f32_avx2_ahead = {
    .name = "read_f32_avx2_ahead",
    .op = "read",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "ahead",
    .summary = "8 sums of 8 lanes, prefetch",
    .run = {.read = run},
    .step = READ_AVX2_STEP,
};
