/// sdpa in plain C: one query and one key at a time.
///
/// Algorithm and error bound: sdpa_scalar.inl.
#include "sdpa/sdpa_scalar.inl"

const struct mha_kernel sdpa_f32_scalar_online = {
    .name = "sdpa_f32_scalar_online",
    .op = "sdpa",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "online",
    .summary = "plain C, online softmax key by key, expf of the C library",
    .run = {.sdpa = run},
    .step = 1,
};
