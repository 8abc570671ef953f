/// pv in plain C: the rows of v that a query sees, each times its weight, added up.
///
/// Algorithm and error bound: pv_scalar.inl.
#include "pv_scalar.inl"

const struct mha_kernel pv_f32_scalar_axpy = {
    .name = "pv_f32_scalar_axpy",
    .op = "pv",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "axpy",
    .summary = "plain C, row by row of V",
    .run = {.pv = run},
};
