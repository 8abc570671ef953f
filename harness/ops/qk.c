/// qk: scores of every query against every key, per head.
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

static float scale_of(const struct problem *problem) {
    return 1.0f / sqrtf((float)problem->shape.head_dim);
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    const size_t heads = s->batch * s->heads;
    shapes[0] = (struct tensor_shape){.name = "q",
                                      .role = TENSOR_INPUT,
                                      .planes = heads,
                                      .rows = s->seq_q,
                                      .cols = s->head_dim,
                                      .element = problem_element(problem)};
    shapes[1] = (struct tensor_shape){.name = "k",
                                      .role = TENSOR_INPUT,
                                      .planes = s->batch * s->kv_heads,
                                      .rows = s->seq_kv,
                                      .cols = s->head_dim,
                                      .element = problem_element(problem)};
    shapes[2] = (struct tensor_shape){
        .name = "s", .role = TENSOR_OUTPUT, .planes = heads, .rows = s->seq_q, .cols = s->seq_kv};
    return 3;
}

static size_t kv_planes(const struct problem *problem) {
    return problem->shape.batch * problem->shape.kv_heads;
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = kv_planes(problem);
    *rows = problem->shape.seq_q;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    const size_t first_head = item->plane * group(problem);
    args->qk = (struct mha_qk_args){
        .heads = group(problem),
        .rows = item->rows,
        .first_row = item->first_row,
        .seq_kv = problem->shape.seq_kv,
        .head_dim = problem->shape.head_dim,
        .q = tensor_at(&t[0], first_head, item->first_row),
        .q_head_stride = t[0].plane_stride,
        .q_stride = t[0].row_stride,
        .k = tensor_at(&t[1], item->plane, 0),
        .k_stride = t[1].row_stride,
        .s = tensor_row(&t[2], first_head, item->first_row),
        .s_head_stride = t[2].plane_stride,
        .s_stride = t[2].row_stride,
        .scale = scale_of(problem),
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.qk(&args->qk, workspace);
}

static void pack(const struct mha_kernel *kernel, const union mha_args *args, void *packed) {
    kernel->pack.qk(&args->qk, packed);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    args->qk.packed = packed;
    args->qk.state = state;
}

/// The bound. A kernel forms head_dim products and adds them in any order, with or without fused
/// multiply-adds: |fl(q.k) - q.k| <= gamma_n sum |q_i k_i|, gamma_n = n u / (1 - n u), u = 2^-24
/// (Higham, 2nd ed., eq. 3.5). The scale is one more rounding at the end, or one in each k_i and
/// one more for scale * log2(e) style constants: n = head_dim + 2. A product, a partial sum, q_i or
/// k_i below 2^-126 may be flushed; each flush costs at most 2^-126 times its cofactor. The
/// oracle's own double sum adds head_dim 2^-53 of the same magnitude.
///
/// bf16 and f16 change nothing: the oracle takes q_i and k_i as they are stored, and so does the
/// kernel, since either is a float. (Their products, of 8 + 8 or 11 + 11 bits, are even exact.)
/// There is no room for a second rounding to the narrow type, such as that of scale k_i: 2^-9 or
/// 2^-12, it is thousands of times u. vdpbf16ps adds two products one after the other, each by a
/// fused multiply-add that rounds to nearest even and takes and leaves what is below 2^-126 as
/// zero (Intel SDM, vol. 2C, VDPBF16PS): head_dim of the roundings and flushes counted here, as
/// has any other grouping of a pair. An f16 below its smallest normal, 2^-14, is none of those that
/// may be flushed.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const size_t dim = problem->shape.head_dim;
    const double scale = (double)scale_of(problem);
    const double n = (double)(dim + 2);
    const double gamma = n * 0x1p-24 / (1 - n * 0x1p-24) + n * 0x1p-53;
    float *scratch = diag_alloc(calloc(2 * dim, sizeof(*scratch)));
    const float *q = tensor_floats(&t[0], plane, row, scratch);
    double q_sum = 0;
    for (size_t i = 0; i < dim; i++) {
        q_sum += fabs((double)q[i]);
    }
    for (size_t j = 0; j < problem->shape.seq_kv; j++) {
        const float *k = tensor_floats(&t[1], plane / group(problem), j, scratch + dim);
        double sum = 0, magnitude = 0, k_sum = 0;
        for (size_t i = 0; i < dim; i++) {
            const double product = (double)q[i] * (double)k[i];
            sum += product;
            magnitude += fabs(product);
            k_sum += fabs((double)k[i]);
        }
        const double flushed = 0x1p-126 * (2 * n + q_sum + k_sum);
        want[j] = sum * scale;
        bound[j] = isfinite(want[j]) ? gamma * magnitude * scale + flushed * (1 + scale) : 0x1p-126;
    }
    free(scratch);
}

static bool trivial(const struct problem *problem) {
    return problem->shape.seq_kv == 0;
}

static double flops(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    return 2 * (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->seq_kv *
           (double)s->head_dim;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    const double dim = (double)s->head_dim;
    const double element = (double)element_bytes(problem_element(problem));
    *read = element * dim * (double)s->batch *
            ((double)s->heads * (double)s->seq_q + (double)s->kv_heads * (double)s->seq_kv);
    *written = 4 * (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->seq_kv;
}

static const char *const classes[] = {"normal", "uniform",   "equal", "one_huge", "ramp",
                                      "cancel", "denormal",  "e30",   "negative", "nan",
                                      "inf",    "minus_inf", "x30",   "x100",     NULL};

const struct op_driver op_qk = {
    .name = "qk",
    .rank = 40,
    .compute = true,
    .elements = 1u << ELEMENT_F32 | 1u << ELEMENT_BF16 | 1u << ELEMENT_F16,
    .axes = OP_AXIS_SEQ_Q | OP_AXIS_SEQ_KV | OP_AXIS_HEAD_DIM,
    .mix = "copy",
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
