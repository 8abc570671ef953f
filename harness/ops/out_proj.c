/// out_proj: the heads' outputs, side by side, times W_O.
#include "projection.h"

static void normalise(struct problem *problem) {
    problem->shape.kv_heads = problem->shape.heads;
    problem->shape.seq_kv = problem->shape.seq_q;
}

static size_t outputs(const struct problem *problem) {
    return projection_depth(problem);
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    return projection_tensors(problem, outputs(problem), shapes);
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    projection_grid(problem, outputs(problem), planes, rows);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    (void)problem;
    args->out_proj = projection_args(t, item);
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.out_proj(&args->out_proj, workspace);
}

static void pack(const struct mha_kernel *kernel, const union mha_args *args, void *packed) {
    kernel->pack.out_proj(&args->out_proj, packed);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    args->out_proj.packed = packed;
    args->out_proj.state = state;
}

static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    (void)problem;
    (void)plane;  // Y has one
    projection_oracle_row(t, row, want, bound);
}

static double flops(const struct problem *problem) {
    return projection_flops(problem, outputs(problem));
}

static void bytes(const struct problem *problem, double *read, double *written) {
    projection_bytes(problem, outputs(problem), read, written);
}

const struct op_driver op_out_proj = {
    .name = "out_proj",
    .rank = 90,
    .compute = true,
    .axes = OP_AXIS_SEQ_Q | OP_AXIS_HEAD_DIM,
    .mix = "read",
    .compare = COMPARE_BOUND,
    .classes = projection_classes,
    .normalise = normalise,
    .tensors = tensors,
    .grid = grid,
    .item_args = item_args,
    .run = run,
    .pack = pack,
    .constant_pack = true,
    .attach = attach,
    .oracle_row = oracle_row,
    .flops = flops,
    .bytes = bytes,
};
