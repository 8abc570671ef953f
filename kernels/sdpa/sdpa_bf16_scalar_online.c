/// sdpa of bf16 in plain C: one query and one key at a time.
///
/// Algorithm and error bound: sdpa_scalar.inl.
#include "widen.h"

#define SDPA_ELEMENT uint16_t
#define SDPA_LOAD(x) widen_bf16(x)
#include "sdpa/sdpa_scalar.inl"

const struct mha_kernel sdpa_bf16_scalar_online = {
    .name = "sdpa_bf16_scalar_online",
    .op = "sdpa",
    .dtype = "bf16",
    .isa = "scalar",
    .tag = "online",
    .summary = "plain C, online softmax key by key, expf of the C library",
    .run = {.sdpa = run},
    .step = 1,
};
