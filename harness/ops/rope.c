/// rope: queries or keys, each pair of elements rotated by its position's angle.
#include <math.h>

#include "heads_copy.h"
#include "op.h"
#include "position_tables.h"

/// The tensors, in order.
enum { X, ANGLES, Y, TENSORS };

/// The planes of the angles: one tensor, so that both have the same stride.
enum { COS, SIN, ANGLE_PLANES };

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    shapes[X] = heads_apart(problem, "x", TENSOR_INPUT);
    shapes[ANGLES] = (struct tensor_shape){.name = "angles",
                                           .role = TENSOR_INPUT,
                                           .planes = ANGLE_PLANES,
                                           .rows = problem->shape.seq_q,
                                           .cols = problem->shape.head_dim / 2,
                                           .given = true};
    shapes[Y] = heads_apart(problem, "y", TENSOR_OUTPUT);
    return TENSORS;
}

static void fill(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows) {
    (void)index;
    float *table = tensor_row(tensor, plane, first);
    position_rope(first, rows, problem->shape.head_dim, problem->position.base,
                  plane == COS ? table : NULL, plane == SIN ? table : NULL, tensor->row_stride);
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch * problem->shape.heads;
    *rows = problem->shape.seq_q;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->rope = (struct mha_rope_args){
        .rows = item->rows,
        .head_dim = problem->shape.head_dim,
        .half = problem->position.half,
        .cos = tensor_row(&t[ANGLES], COS, item->first_row),
        .sin = tensor_row(&t[ANGLES], SIN, item->first_row),
        .angle_stride = t[ANGLES].row_stride,
        .x = tensor_row(&t[X], item->plane, item->first_row),
        .x_stride = t[X].row_stride,
        .y = tensor_row(&t[Y], item->plane, item->first_row),
        .y_stride = t[Y].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.rope(&args->rope, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->rope.state = state;
}

/// One element of the result and its bound, see oracle_row().
static void rotated(double p, double q, double *want, double *bound) {
    const double gamma = 2 * 0x1p-24 / (1 - 2 * 0x1p-24) + 0x1p-53;
    *want = p + q;
    *bound = 5 * 0x1p-126;
    if (isfinite(*want)) {
        *bound += gamma * (fabs(p) + fabs(q));
    }
}

/// The bound. Two products p and q and their sum, with or without a fused multiply-add: gamma_2
/// (|p|
/// + |q|), gamma_2 = 2 u / (1 - 2 u), u = 2^-24 (Higham, 2nd ed., eq. 3.5). The tables are inputs;
/// the products are exact in double, whose sum adds 2^-53. The result, the two products and the two
/// elements of x, whose cofactors are at most 1, may be flushed: 2^-126 each. (The tables' entries
/// are zero or far above 2^-126.)
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const size_t dim = problem->shape.head_dim, pairs = dim / 2;
    const size_t step = problem->position.half ? 1 : 2, apart = problem->position.half ? pairs : 1;
    const float *x = tensor_row(&t[X], plane, row);
    const float *cosines = tensor_row(&t[ANGLES], COS, row);
    const float *sines = tensor_row(&t[ANGLES], SIN, row);
    for (size_t i = 0; i < pairs; i++) {
        const size_t at = i * step;
        const double a = (double)x[at], b = (double)x[at + apart];
        const double c = (double)cosines[i], s = (double)sines[i];
        rotated(a * c, -b * s, &want[at], &bound[at]);
        rotated(a * s, b * c, &want[at + apart], &bound[at + apart]);
    }
    if (dim % 2 != 0) {
        want[dim - 1] = (double)x[dim - 1];
        bound[dim - 1] = 0x1p-126;
    }
}

/// Rows of the whole problem.
static double rows_of(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    return (double)(s->batch * s->heads) * (double)s->seq_q;
}

/// Four products and two sums a pair.
static double flops(const struct problem *problem) {
    const size_t pairs = problem->shape.head_dim / 2;
    return 6 * rows_of(problem) * (double)pairs;
}

/// The tables are not counted: they follow from the positions, and no kernel has to read them.
/// Counted, a kernel could pass the bandwidth of a copy, which reads no more than it writes.
static void bytes(const struct problem *problem, double *read, double *written) {
    *written = 4 * rows_of(problem) * (double)problem->shape.head_dim;
    *read = *written;
}

static const char *const classes[] = {"normal",   "uniform",   "equal",    "cancel",
                                      "denormal", "e30",       "negative", "nan",
                                      "inf",      "minus_inf", NULL};

const struct op_driver op_rope = {
    .name = "rope",
    .rank = 30,
    .positions = 1u << POSITION_ROPE,
    .default_positions = "rope,rope:half",
    .axes = OP_AXIS_HEAD_DIM,
    .mix = "copy",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = heads_copy_normalise,
    .tensors = tensors,
    .fill = fill,
    .grid = grid,
    .item_args = item_args,
    .run = run,
    .attach = attach,
    .oracle_row = oracle_row,
    .flops = flops,
    .bytes = bytes,
};
