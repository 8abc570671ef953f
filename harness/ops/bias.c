/// bias: what ALiBi and T5 add to the scores for the distance between query and key.
#include <math.h>

#include "op.h"
#include "position_tables.h"

static void normalise(struct problem *problem) {
    problem->shape.kv_heads =
        problem->shape.heads;  // head_dim does not matter, but names the model
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    size_t count = 0;
    shapes[count++] = (struct tensor_shape){.name = "x",
                                            .role = TENSOR_INPUT,
                                            .planes = s->batch * s->heads,
                                            .rows = s->seq_q,
                                            .cols = s->seq_kv};
    count += position_bias_tensor(problem, &shapes[count]);
    shapes[count] = shapes[0];
    shapes[count].name = "y";
    shapes[count].role = TENSOR_OUTPUT;
    return count + 1;
}

static void fill(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows) {
    (void)index;
    (void)plane;
    (void)first;
    if (rows > 0) {
        position_bias_fill(problem, tensor);
    }
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch * problem->shape.heads;
    *rows = problem->shape.seq_q;
}

/// The bias of the head that a plane (batch x head) belongs to.
static struct mha_bias bias_of(const struct problem *problem, const struct tensor *t,
                               size_t plane) {
    return position_bias(problem, plane % problem->shape.heads, &t[1]);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->bias = (struct mha_bias_args){
        .rows = item->rows,
        .cols = problem->shape.seq_kv,
        .first_row = item->first_row,
        .bias = bias_of(problem, t, item->plane),
        .x = tensor_row(&t[0], item->plane, item->first_row),
        .x_stride = t[0].row_stride,
        .y = tensor_row(&t[2], item->plane, item->first_row),
        .y_stride = t[2].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.bias(&args->bias, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->bias.state = state;
}

/// The bound, with u = 2^-24. ALiBi's product b of slope and distance is off by u |b| (the distance
/// is exact below 2^24), the sum by u |x + b'| <= u (|x + b| + u |b|) (Higham, 2nd ed., eq. 2.4); a
/// fused multiply-add has the second only. T5's b is an input: the sum alone. The oracle's own
/// arithmetic adds 2^-53. Both operands and the result may be flushed: 2^-126 each.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const double u = 0x1p-24 + 0x1p-53;
    const struct mha_bias bias = bias_of(problem, t, plane);
    const float *x = tensor_row(&t[0], plane, row);
    for (size_t c = 0; c < problem->shape.seq_kv; c++) {
        const double b = position_bias_at(&bias, 0, row, c);
        const double product = bias.kind == MHA_BIAS_ALIBI ? u * fabs(b) : 0;
        want[c] = (double)x[c] + b;
        bound[c] = 3 * 0x1p-126;
        if (isfinite(want[c])) {
            bound[c] += product + u * (fabs(want[c]) + product);
        }
    }
}

static double elements(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    return (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->seq_kv;
}

/// A product and a sum; T5 looks its summand up.
static double flops(const struct problem *problem) {
    return (problem->position.kind == POSITION_ALIBI ? 2 : 1) * elements(problem);
}

/// The scores. Slopes and tables are some bytes a head, which any other input would drown.
static void bytes(const struct problem *problem, double *read, double *written) {
    *read = 4 * elements(problem);
    *written = *read;
}

static const char *const classes[] = {"normal",   "uniform", "ramp", "cancel",    "denormal", "e30",
                                      "negative", "nan",     "inf",  "minus_inf", NULL};

const struct op_driver op_bias = {
    .name = "bias",
    .rank = 50,
    .positions = 1u << POSITION_ALIBI | 1u << POSITION_T5,
    .default_positions = "alibi,t5",
    .head_dim_labels = true,
    .axes = OP_AXIS_SEQ_KV,
    .mix = "copy",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = normalise,
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
