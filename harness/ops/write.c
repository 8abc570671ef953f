/// write: the ceiling of storing.
#include "stream.h"

#define VALUE 0x1.8p+1f

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const size_t planes = problem->shape.batch, count = problem->shape.seq_kv;
    shapes[0] = (struct tensor_shape){
        .name = "y", .role = TENSOR_OUTPUT, .planes = planes, .rows = 1, .cols = count};
    return 1;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->stream = (struct mha_stream_args){
        .count = problem->shape.seq_kv,
        .value = VALUE,
        .y = tensor_row(&t[0], item->plane, 0),
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.write(&args->stream, workspace);
}

/// The value itself: the bound is 0.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    (void)t;
    (void)plane;
    (void)row;
    for (size_t i = 0; i < problem->shape.seq_kv; i++) {
        want[i] = (double)VALUE;
        bound[i] = 0;
    }
}

static bool trivial(const struct problem *problem) {
    (void)problem;
    return true;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const double all = stream_bytes(problem);
    *read = 0;
    *written = all;
}

static const char *const classes[] = {"normal", NULL};

const struct op_driver op_write = {
    .name = "write",
    .rank = 920,
    .ceiling = true,
    .axes = OP_AXIS_SEQ_KV,
    .mix = "write",
    .compare = COMPARE_BITS,
    .classes = classes,
    .normalise = stream_normalise,
    .tensors = tensors,
    .grid = stream_grid,
    .item_args = item_args,
    .run = run,
    .attach = stream_attach,
    .oracle_row = oracle_row,
    .trivial = trivial,
    .flops = stream_flops,
    .bytes = bytes,
};
