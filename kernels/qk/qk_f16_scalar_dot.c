/// qk of f16 in plain C: one dot product per score, one element at a time.
///
/// Algorithm and error bound: qk_scalar.inl.
#include "widen.h"

#define QK_ELEMENT uint16_t
#define QK_LOAD(x) widen_f16(x)
#include "qk_scalar.inl"

const struct mha_kernel qk_f16_scalar_dot = {
    .name = "qk_f16_scalar_dot",
    .op = "qk",
    .dtype = "f16",
    .isa = "scalar",
    .tag = "dot",
    .summary = "plain C, one dot product per score",
    .run = {.qk = run},
};
