/// qkv_proj in plain C: rows of w, each times an element of x, added up.
///
/// Algorithm and error bound: proj_scalar.inl.
#include "proj_scalar.inl"

const struct mha_kernel qkv_proj_f32_scalar_axpy = {
    .name = "qkv_proj_f32_scalar_axpy",
    .op = "qkv_proj",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "axpy",
    .summary = "plain C, row by row of w",
    .run = {.qkv_proj = run},
};
