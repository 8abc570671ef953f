/// pv: the values of the keys that a query sees, weighted and summed, per head.
#include <math.h>
#include <stdlib.h>

#include "diag.h"
#include "op.h"

static void normalise(struct problem *problem) {
    (void)problem;  // every axis of the shape matters
}

static size_t group(const struct problem *problem) {
    return problem->shape.heads / problem->shape.kv_heads;
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    const size_t heads = s->batch * s->heads;
    shapes[0] = (struct tensor_shape){.name = "p",
                                      .role = TENSOR_INPUT,
                                      .planes = heads,
                                      .rows = s->seq_q,
                                      .cols = s->seq_kv,
                                      .element = problem_element(problem)};
    shapes[1] = (struct tensor_shape){.name = "v",
                                      .role = TENSOR_INPUT,
                                      .planes = s->batch * s->kv_heads,
                                      .rows = s->seq_kv,
                                      .cols = s->head_dim,
                                      .element = problem_element(problem)};
    shapes[2] = (struct tensor_shape){
        .name = "o", .role = TENSOR_OUTPUT, .planes = heads, .rows = s->seq_q, .cols = s->head_dim};
    return 3;
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch * problem->shape.kv_heads;
    *rows = problem->shape.seq_q;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    const size_t first_head = item->plane * group(problem);
    args->pv = (struct mha_pv_args){
        .heads = group(problem),
        .rows = item->rows,
        .first_row = item->first_row,
        .seq_kv = problem->shape.seq_kv,
        .head_dim = problem->shape.head_dim,
        .mask = problem_mask(problem, item->plane / problem->shape.kv_heads),
        .p = tensor_at(&t[0], first_head, item->first_row),
        .p_head_stride = t[0].plane_stride,
        .p_stride = t[0].row_stride,
        .v = tensor_at(&t[1], item->plane, 0),
        .v_stride = t[1].row_stride,
        .o = tensor_row(&t[2], first_head, item->first_row),
        .o_head_stride = t[2].plane_stride,
        .o_stride = t[2].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.pv(&args->pv, workspace);
}

static void pack(const struct mha_kernel *kernel, const union mha_args *args, void *packed) {
    kernel->pack.pv(&args->pv, packed);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    args->pv.packed = packed;
    args->pv.state = state;
}

/// The bound. A kernel forms a product for each of the n keys that the query sees and adds them in
/// any order and grouping, with or without fused multiply-adds: |fl(p.v) - p.v| <= gamma_n sum |p_j
/// v_ji|, gamma_n = n u / (1 - n u), u = 2^-24 (Higham, 2nd ed., section 3.1). A product, a partial
/// sum, p_j or v_ji below 2^-126 may be flushed; each flush costs at most 2^-126 times its
/// cofactor. The oracle's own double sum adds n 2^-53 of the same magnitude. Without a visible key
/// the result is zero, and the bound the 2^-126 that every bound has.
///
/// bf16 and f16 change nothing, as in qk: p_j and v_ji are taken as they are stored, products are
/// exact, and each of vdpbf16ps's two multiply-adds is one of the n.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const size_t dim = problem->shape.head_dim;
    const struct mha_mask mask = problem_mask(problem, plane / problem->shape.heads);
    const struct mha_span span = mha_row_span(&mask, row);
    const double n = (double)(span.end - span.begin);
    const double gamma = n * 0x1p-24 / (1 - n * 0x1p-24) + n * 0x1p-53;
    const size_t keys = problem->shape.seq_kv;
    float *scratch = diag_alloc(calloc(keys + dim, sizeof(*scratch)));
    const float *p = tensor_floats(&t[0], plane, row, scratch);
    double p_sum = 0;
    for (size_t j = span.begin; j < span.end; j++) {
        p_sum += fabs((double)p[j]);
    }
    for (size_t i = 0; i < dim; i++) {
        want[i] = 0;
        bound[i] = 0x1p-126 * (1 + 2 * n + p_sum);
    }
    for (size_t j = span.begin; j < span.end; j++) {
        const float *v = tensor_floats(&t[1], plane / group(problem), j, scratch + keys);
        const double weight = (double)p[j];
        for (size_t i = 0; i < dim; i++) {
            const double product = weight * (double)v[i];
            want[i] += product;
            bound[i] += gamma * fabs(product) + 0x1p-126 * fabs((double)v[i]);
        }
    }
    for (size_t i = 0; i < dim; i++) {
        bound[i] = isfinite(want[i]) ? bound[i] : 0x1p-126;
    }
    free(scratch);
}

/// Pairs of a query and a key that it sees, over all sequences of the batch, of one head.
static double visible(const struct problem *problem) {
    double seen = 0;
    for (size_t b = 0; b < problem->shape.batch; b++) {
        const struct mha_mask mask = problem_mask(problem, b);
        for (size_t r = 0; r < problem->shape.seq_q; r++) {
            const struct mha_span span = mha_row_span(&mask, r);
            seen += (double)(span.end - span.begin);
        }
    }
    return seen;
}

/// Rows of V that any query sees, over all sequences of the batch, of one kv head.
static double values_seen(const struct problem *problem) {
    double seen = 0;
    for (size_t b = 0; b < problem->shape.batch && problem->shape.seq_q > 0; b++) {
        const struct mha_mask mask = problem_mask(problem, b);
        // Spans move forwards from one row to the next, and begin no later than the one before
        // ends.
        const struct mha_span last = mha_row_span(&mask, problem->shape.seq_q - 1);
        seen += (double)(last.end - mha_row_span(&mask, 0).begin);
    }
    return seen;
}

/// Whether no query sees any key: all results are zeros then.
static bool trivial(const struct problem *problem) {
    return visible(problem) == 0;
}

static double flops(const struct problem *problem) {
    return 2 * visible(problem) * (double)problem->shape.heads * (double)problem->shape.head_dim;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    const double dim = (double)s->head_dim;
    const double element = (double)element_bytes(problem_element(problem));
    *read = element * (visible(problem) * (double)s->heads +
                       values_seen(problem) * (double)s->kv_heads * dim);
    *written = 4 * (double)(s->batch * s->heads) * (double)s->seq_q * dim;
}

static const char *const classes[] = {"normal", "uniform",  "equal",     "one_huge", "ramp",
                                      "cancel", "denormal", "e30",       "negative", "masked",
                                      "nan",    "inf",      "minus_inf", NULL};

const struct op_driver op_pv = {
    .name = "pv",
    .rank = 70,
    .has_mask = true,
    .compute = true,
    .elements = 1u << ELEMENT_F32 | 1u << ELEMENT_BF16 | 1u << ELEMENT_F16,
    .axes = OP_AXIS_SEQ_Q | OP_AXIS_SEQ_KV | OP_AXIS_HEAD_DIM,
    .mix = "read",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = normalise,
    .tensors = tensors,
    .grid = grid,
    .item_args = item_args,
    .run = run,
    .pack = pack,
    .attach = attach,
    .oracle_row = oracle_row,
    .trivial = trivial,
    .flops = flops,
    .bytes = bytes,
};
