/// read: the ceiling of loading: a sum over one stream.
#include "stream.h"

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const size_t planes = problem->shape.batch, count = problem->shape.seq_kv;
    shapes[0] = (struct tensor_shape){
        .name = "x", .role = TENSOR_INPUT, .planes = planes, .rows = 1, .cols = count};
    shapes[1] = (struct tensor_shape){
        .name = "y", .role = TENSOR_OUTPUT, .planes = planes, .rows = 1, .cols = 1};
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
    kernel->run.read(&args->stream, workspace);
}

/// A sum in any order: gamma_(n-1) sum |x_i|, u = 2^-24 (Higham, 2nd ed., section 4.2), and n
/// flushes. The class `signs` holds whole numbers; while their magnitudes add up to at most 2^24,
/// every partial sum is exact and so must be the result. That is the class which is timed: the
/// general bound means nothing for millions of elements.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const float *x = tensor_row(&t[0], plane, row);
    const double n = (double)problem->shape.seq_kv;
    double sum = 0, magnitude = 0;
    bool whole = true;
    for (size_t i = 0; i < problem->shape.seq_kv; i++) {
        const double value = (double)x[i];
        sum += value;
        magnitude += value < 0 ? -value : value;
        whole = whole && value == (double)(int)value;
    }
    want[0] = sum;
    bound[0] = 0x1p-126;
    if (!whole || magnitude > 0x1p24) {
        bound[0] += magnitude * n * (0x1p-24 + 0x1p-53) / (1 - n * 0x1p-24) + n * 0x1p-126;
    }
}

/// The sum of nothing is 0.
static bool trivial(const struct problem *problem) {
    return problem->shape.seq_kv == 0;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const double all = stream_bytes(problem);
    *read = all;
    *written = 0;
}

static const char *const classes[] = {"signs", "normal", NULL};

const struct op_driver op_read = {
    .name = "read",
    .rank = 910,
    .ceiling = true,
    .axes = OP_AXIS_SEQ_KV,
    .mix = "read",
    .compare = COMPARE_BOUND,
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
