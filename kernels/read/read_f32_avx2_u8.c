/// read_f32, AVX2: a sum, fetched by the hardware alone. Error, tail and registers: read_avx2.h.
#include "read/read_avx2.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    read_avx2_sum(args, 0);
}

const struct mha_kernel read_f32_avx2_u8 = {
    .name = "read_f32_avx2_u8",
    .op = "read",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "u8",
    .summary = "8 sums of 8 lanes",
    .run = {.read = run},
    .step = READ_AVX2_STEP,
};
