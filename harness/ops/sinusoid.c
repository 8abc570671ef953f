/// sinusoid: the fixed position encoding, added to the embeddings.
#include <math.h>

#include "heads_copy.h"
#include "op.h"
#include "position_tables.h"

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    shapes[0] = heads_joined(problem, "x", TENSOR_INPUT);
    shapes[1] = heads_joined(problem, "pe", TENSOR_INPUT);
    shapes[1].planes = 1;
    shapes[1].given = true;
    shapes[2] = heads_joined(problem, "y", TENSOR_OUTPUT);
    return 3;
}

static void fill(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows) {
    (void)problem;
    (void)index;
    position_sinusoid(first, rows, tensor->shape.cols, tensor_row(tensor, plane, first),
                      tensor->row_stride);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->sinusoid = (struct mha_sinusoid_args){
        .tokens = item->rows,
        .cols = problem->shape.heads * problem->shape.head_dim,
        .x = tensor_row(&t[0], item->plane, item->first_row),
        .x_stride = t[0].row_stride,
        .pe = tensor_row(&t[1], 0, item->first_row),
        .pe_stride = t[1].row_stride,
        .y = tensor_row(&t[2], item->plane, item->first_row),
        .y_stride = t[2].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.sinusoid(&args->sinusoid, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->sinusoid.state = state;
}

/// The bound. One addition: |fl(x + pe) - (x + pe)| <= u |x + pe|, u = 2^-24 (Higham, 2nd ed., eq.
/// 2.4); the oracle's own in double adds 2^-53. The table is an input. Either operand and the
/// result may be flushed: 2^-126 each.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const size_t cols = problem->shape.heads * problem->shape.head_dim;
    const float *x = tensor_row(&t[0], plane, row), *pe = tensor_row(&t[1], 0, row);
    for (size_t i = 0; i < cols; i++) {
        want[i] = (double)x[i] + (double)pe[i];
        bound[i] = 3 * 0x1p-126;
        if (isfinite(want[i])) {
            bound[i] += (0x1p-24 + 0x1p-53) * fabs(want[i]);
        }
    }
}

/// Elements of the result.
static double elements(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    return (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->head_dim;
}

static double flops(const struct problem *problem) {
    return elements(problem);
}

/// The table is not counted: it follows from the positions, and no kernel has to read it. Counted,
/// a kernel could pass the bandwidth of a copy, which reads no more than it writes.
static void bytes(const struct problem *problem, double *read, double *written) {
    *written = 4 * elements(problem);
    *read = *written;
}

static const char *const classes[] = {"normal", "uniform", "cancel",    "denormal", "e30",
                                      "nan",    "inf",     "minus_inf", NULL};

const struct op_driver op_sinusoid = {
    .name = "sinusoid",
    .rank = 4,
    .axes = OP_AXIS_HEAD_DIM,
    .mix = "copy",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = heads_copy_normalise,
    .tensors = tensors,
    .fill = fill,
    .grid = heads_copy_grid,
    .item_args = item_args,
    .run = run,
    .attach = attach,
    .oracle_row = oracle_row,
    .flops = flops,
    .bytes = bytes,
};
