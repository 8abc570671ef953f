/// read_f32, AVX-512: a sum, fetched by the hardware alone. Error, tail and registers:
/// read_avx512.h.
#include "read/read_avx512.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    read_avx512_sum(args, 0);
}

const struct mha_kernel read_f32_avx512_u8 = {
    .name = "read_f32_avx512_u8",
    .op = "read",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "u8",
    .summary = "8 sums of 16 lanes",
    .run = {.read = run},
    .step = READ_AVX512_STEP,
};
