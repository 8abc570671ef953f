/// qk in plain C: one dot product per score, one element at a time.
///
/// Algorithm and error bound: qk_scalar.inl.
#include "qk_scalar.inl"

const struct mha_kernel qk_f32_scalar_dot = {
    .name = "qk_f32_scalar_dot",
    .op = "qk",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "dot",
    .summary = "plain C, one dot product per score",
    .run = {.qk = run},
};
