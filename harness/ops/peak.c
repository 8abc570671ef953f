/// peak: the ceiling of arithmetic: fused multiply-adds on registers, nothing else.
#include "op.h"

/// Rounds of one item: some 40 microseconds. A thread that a neighbour slows down leaves items to
/// the others, as it does with the items of a kernel that is held against this.
enum { STEPS = 10000 };

static void normalise(struct problem *problem) {
    const size_t planes = problem->shape.batch;
    problem->shape = (struct mha_shape){planes, 1, 1, 1, MHA_PEAK_LANES, 1};
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    shapes[0] = (struct tensor_shape){.name = "y",
                                      .role = TENSOR_OUTPUT,
                                      .planes = problem->shape.batch,
                                      .rows = 1,
                                      .cols = MHA_PEAK_LANES};
    return 1;
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch;
    *rows = 1;
}

/// The plane's own start value, so that no two items have the same result.
static float start_of(size_t plane) {
    return (float)(plane % 1024 + 3);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    (void)problem;
    args->peak = (struct mha_peak_args){
        .steps = STEPS,
        .start = start_of(item->plane),
        .increment = 5,
        .y = tensor_row(&t[0], item->plane, 0),
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.peak(&args->peak, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->peak.state = state;
}

/// Integers below 2^24: every step is exact, the bound 0.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    (void)problem;
    (void)row;
    for (size_t i = 0; i < t[0].shape.cols; i++) {
        want[i] = (double)start_of(plane) + 5.0 * STEPS;
        bound[i] = 0;
    }
}

static bool trivial(const struct problem *problem) {
    (void)problem;
    return true;
}

/// Depends on the kernel: steps times its flops_per_step. The driver only knows the steps.
static double flops(const struct problem *problem) {
    return (double)STEPS * (double)problem->shape.batch;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    (void)problem;
    *read = 0;
    *written = 0;
}

static const char *const classes[] = {"normal", NULL};

const struct op_driver op_peak = {
    .name = "peak",
    .rank = 900,
    .ceiling = true,
    .compute = true,
    .elements = 1u << ELEMENT_F32 | 1u << ELEMENT_BF16,
    .mix = "copy",
    .compare = COMPARE_BITS,
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
