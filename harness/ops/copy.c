/// copy: the ceiling of moving data: one stream in, one out.
#include "stream.h"

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const size_t planes = problem->shape.batch, count = problem->shape.seq_kv;
    shapes[0] = (struct tensor_shape){
        .name = "x", .role = TENSOR_INPUT, .planes = planes, .rows = 1, .cols = count};
    shapes[1] = (struct tensor_shape){
        .name = "y", .role = TENSOR_OUTPUT, .planes = planes, .rows = 1, .cols = count};
    return 2;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->stream = (struct mha_stream_args){
        .count = problem->shape.seq_kv,
        .x = tensor_row(&t[0], item->plane, 0),
        .y = tensor_row(&t[1], item->plane, 0),
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.copy(&args->stream, workspace);
}

/// A copy: the bound is 0, and the bits must be equal.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const float *x = tensor_row(&t[0], plane, row);
    for (size_t i = 0; i < problem->shape.seq_kv; i++) {
        want[i] = (double)x[i];
        bound[i] = 0;
    }
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const double all = stream_bytes(problem);
    *read = all;
    *written = all;
}

static const char *const classes[] = {"normal", "bits", NULL};

const struct op_driver op_copy = {
    .name = "copy",
    .rank = 930,
    .ceiling = true,
    .axes = OP_AXIS_SEQ_KV,
    .mix = "copy",
    .compare = COMPARE_BITS,
    .classes = classes,
    .normalise = stream_normalise,
    .tensors = tensors,
    .grid = stream_grid,
    .item_args = item_args,
    .run = run,
    .attach = stream_attach,
    .oracle_row = oracle_row,
    .flops = stream_flops,
    .bytes = bytes,
};
