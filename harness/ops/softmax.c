/// softmax: rows of scores to rows of weights, under a mask.
#include <math.h>

#include "op.h"
#include "stats.h"

static void normalise(struct problem *problem) {
    problem->shape.kv_heads =
        problem->shape.heads;  // head_dim does not matter, but names the model
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    shapes[0] = (struct tensor_shape){.name = "x",
                                      .role = TENSOR_INPUT,
                                      .planes = s->batch * s->heads,
                                      .rows = s->seq_q,
                                      .cols = s->seq_kv};
    shapes[1] = shapes[0];
    shapes[1].name = "y";
    shapes[1].role = TENSOR_OUTPUT;
    return 2;
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch * problem->shape.heads;
    *rows = problem->shape.seq_q;
}

/// The mask of the sequence that a plane (batch x head) belongs to.
static struct mha_mask mask_of(const struct problem *problem, size_t plane) {
    return problem_mask(problem, plane / problem->shape.heads);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->softmax = (struct mha_softmax_args){
        .rows = item->rows,
        .cols = problem->shape.seq_kv,
        .first_row = item->first_row,
        .mask = mask_of(problem, item->plane),
        .x = tensor_row(&t[0], item->plane, item->first_row),
        .x_stride = t[0].row_stride,
        .y = tensor_row(&t[1], item->plane, item->first_row),
        .y_stride = t[1].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.softmax(&args->softmax, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->softmax.state = state;
}

/// The bound. With u = 2^-24, m the maximum and t_j = x_j - m, a kernel computes
///
///   e_j = exp(fl(x_j - m)): fl() is off by u |t_j| in the argument, a relative error of u |t_j| in
///         the exponential, which itself is allowed 4 ULP, 8 u relative. A kernel in base 2,
///         2^fl(x_j log2 e - m log2 e), is off by as much and by 0.23 u |t_j| of log2 e's rounding,
///         which comes out of that allowance: its power has to be better than 4 ULP;
///   s   = sum of the e_j, all positive: (n - 1) u for any order of the additions (Higham, Accuracy
///         and Stability of Numerical Algorithms, 2nd ed., section 4.2), plus the e_j's own errors,
///         each weighted by its share y_j of the sum;
///   y_j = e_j / s: u for a division, 2.5 u for a reciprocal and a product; 3 u is allowed.
///
/// The relative errors are added and divided by (1 - their sum) for the higher orders. The oracle's
/// own double arithmetic adds (n + 8) 2^-53. Flushing an e_j below 2^-126 changes y_j by at most
/// 2^-126 (the sum is at least 1) and the sum by n 2^-126; y_j itself may be flushed: 2^-126 again.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const double u = 0x1p-24;
    const size_t cols = problem->shape.seq_kv;
    const float *x = tensor_row(&t[0], plane, row);
    const struct mha_mask mask = mask_of(problem, plane);
    const struct mha_span span = mha_row_span(&mask, row);
    double max = -HUGE_VAL;
    bool poisoned = false;
    for (size_t c = 0; c < cols; c++) {
        want[c] = 0;
        bound[c] = 0x1p-126;
    }
    for (size_t c = span.begin; c < span.end; c++) {
        const double value = (double)x[c];
        poisoned = poisoned || isnan(value) || (isinf(value) && value > 0);
        max = value > max ? value : max;
    }
    if (poisoned) {
        for (size_t c = span.begin; c < span.end; c++) {
            want[c] = UNKNOWN;
        }
        return;
    }
    if (isinf(max)) {
        return;
    }
    double sum = 0, weighted = 0;
    for (size_t c = span.begin; c < span.end; c++) {
        const double below = max - (double)x[c];
        want[c] = exp(-below);
        sum += want[c];
        weighted += want[c] > 0 ? want[c] * below : 0;
    }
    const double n = (double)(span.end - span.begin);
    const double of_sum = u * weighted / sum + 8 * u + (n - 1) * u + n * 0x1p-126;
    for (size_t c = span.begin; c < span.end; c++) {
        const double below = max - (double)x[c];
        want[c] /= sum;
        const double relative = u * below + 8 * u + of_sum + 3 * u + (n + 8) * 0x1p-53;
        // An element so far below that the first-order sum means nothing is far below 2^-126 too.
        bound[c] = (relative < 0.5 ? want[c] * relative / (1 - relative) : want[c]) + 2 * 0x1p-126;
    }
}

static bool trivial(const struct problem *problem) {
    return problem->shape.seq_kv <= 1;
}

static double visible(const struct problem *problem) {
    double seen = 0;
    for (size_t b = 0; b < problem->shape.batch; b++) {
        const struct mha_mask mask = problem_mask(problem, b);
        for (size_t r = 0; r < problem->shape.seq_q; r++) {
            const struct mha_span span = mha_row_span(&mask, r);
            seen += (double)(span.end - span.begin);
        }
    }
    return seen * (double)problem->shape.heads;
}

/// Five operations an element: maximum, subtraction, exponential (counted as one), sum, scaling.
static double flops(const struct problem *problem) {
    return 5 * visible(problem);
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    *read = 4 * visible(problem);
    *written = 4 * (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->seq_kv;
}

static const char *const classes[] = {
    "normal",   "uniform", "equal", "one_huge", "ramp", "cancel",    "denormal", "e30",  "negative",
    "overflow", "masked",  "deep",  "nan",      "inf",  "minus_inf", "drift",    "jump", NULL};

const struct op_driver op_softmax = {
    .name = "softmax",
    .rank = 60,
    .has_mask = true,
    .head_dim_labels = true,
    .axes = OP_AXIS_SEQ_KV,
    .mix = "copy",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = normalise,
    .tensors = tensors,
    .grid = grid,
    .item_args = item_args,
    .run = run,
    .attach = attach,
    .oracle_row = oracle_row,
    .trivial = trivial,
    .flops = flops,
    .bytes = bytes,
};
