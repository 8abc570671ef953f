/// concat: the heads' outputs side by side.
#include "heads_copy.h"

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    shapes[0] = heads_apart(problem, "x", TENSOR_INPUT);
    shapes[1] = heads_joined(problem, "y", TENSOR_OUTPUT);
    return 2;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    const size_t heads = problem->shape.heads;
    args->concat = (struct mha_concat_args){
        .heads = heads,
        .tokens = item->rows,
        .head_dim = problem->shape.head_dim,
        .x = tensor_row(&t[0], item->plane * heads, item->first_row),
        .x_head_stride = t[0].plane_stride,
        .x_stride = t[0].row_stride,
        .y = tensor_row(&t[1], item->plane, item->first_row),
        .y_stride = t[1].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.concat(&args->concat, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->concat.state = state;
}

/// A copy: the bound is 0, and the bits must be equal.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const size_t heads = problem->shape.heads, dim = problem->shape.head_dim;
    for (size_t h = 0; h < heads; h++) {
        const float *x = tensor_row(&t[0], plane * heads + h, row);
        for (size_t i = 0; i < dim; i++) {
            want[h * dim + i] = (double)x[i];
            bound[h * dim + i] = 0;
        }
    }
}

const struct op_driver op_concat = {
    .name = "concat",
    .rank = 80,
    .axes = OP_AXIS_HEAD_DIM,
    .mix = "copy",
    .compare = COMPARE_BITS,
    .classes = heads_copy_classes,
    .normalise = heads_copy_normalise,
    .tensors = tensors,
    .grid = heads_copy_grid,
    .item_args = item_args,
    .run = run,
    .attach = attach,
    .oracle_row = oracle_row,
    .flops = heads_copy_flops,
    .bytes = heads_copy_bytes,
};
