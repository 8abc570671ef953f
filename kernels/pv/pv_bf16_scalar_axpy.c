/// pv of bf16 in plain C: the rows of v that a query sees, each times its weight, added up.
///
/// Algorithm and error bound: pv_scalar.inl.
#include "widen.h"

#define PV_ELEMENT uint16_t
#define PV_LOAD(x) widen_bf16(x)
#include "pv_scalar.inl"

const struct mha_kernel pv_bf16_scalar_axpy = {
    .name = "pv_bf16_scalar_axpy",
    .op = "pv",
    .dtype = "bf16",
    .isa = "scalar",
    .tag = "axpy",
    .summary = "plain C, row by row of V",
    .run = {.pv = run},
};
