/// What the drivers of qkv_proj and out_proj share: Y = X W over the tokens of all sequences. They
/// differ in the number of W's columns only.
///
/// The planes of the grid are pieces of MHA_PROJ_COLS columns of W, each of which a kernel packs
/// once; the rows are the tokens.
#ifndef MHA_OPS_PROJECTION_H
#define MHA_OPS_PROJECTION_H

#include <math.h>

#include "op.h"

/// Input features: d_model.
static inline size_t projection_depth(const struct problem *problem) {
    return problem->shape.heads * problem->shape.head_dim;
}

static inline size_t projection_tokens(const struct problem *problem) {
    return problem->shape.batch * problem->shape.seq_q;
}

/// Describes X, W and Y for a W of `outputs` columns. W is scaled as layers are initialised, by
/// 1/sqrt(depth), so that results are of the inputs' size (Glorot and Bengio 2010, equation 12).
static inline size_t projection_tensors(const struct problem *problem, size_t outputs,
                                        struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const size_t depth = projection_depth(problem);
    shapes[0] = (struct tensor_shape){.name = "x",
                                      .role = TENSOR_INPUT,
                                      .planes = 1,
                                      .rows = projection_tokens(problem),
                                      .cols = depth};
    shapes[1] = (struct tensor_shape){.name = "w",
                                      .role = TENSOR_INPUT,
                                      .planes = 1,
                                      .rows = depth,
                                      .cols = outputs,
                                      .scale = 1.0f / sqrtf((float)depth)};
    shapes[2] = (struct tensor_shape){.name = "y",
                                      .role = TENSOR_OUTPUT,
                                      .planes = 1,
                                      .rows = projection_tokens(problem),
                                      .cols = outputs};
    return 3;
}

static inline void projection_grid(const struct problem *problem, size_t outputs, size_t *planes,
                                   size_t *rows) {
    *planes = (outputs + MHA_PROJ_COLS - 1) / MHA_PROJ_COLS;
    *rows = projection_tokens(problem);
}

static inline struct mha_proj_args projection_args(const struct tensor *t,
                                                   const struct item *item) {
    const size_t first = item->plane * MHA_PROJ_COLS;
    const size_t left = t[1].shape.cols - first;
    return (struct mha_proj_args){
        .rows = item->rows,
        .depth = t[1].shape.rows,
        .cols = left < MHA_PROJ_COLS ? left : MHA_PROJ_COLS,
        .x = tensor_row(&t[0], 0, item->first_row),
        .x_stride = t[0].row_stride,
        .w = tensor_row(&t[1], 0, 0) + first,
        .w_stride = t[1].row_stride,
        .y = tensor_row(&t[2], 0, item->first_row) + first,
        .y_stride = t[2].row_stride,
    };
}

/// The bound. A kernel forms depth products and adds them in any order and grouping, with or
/// without fused multiply-adds: |fl(x.w) - x.w| <= gamma_n sum |x_i w_ij|, n = depth, gamma_n = n u
/// / (1 - n u), u = 2^-24 (Higham, 2nd ed., section 3.1). A product, a partial sum, x_i or w_ij
/// below 2^-126 may be flushed; each flush costs at most 2^-126 times its cofactor. The oracle's
/// own double sum adds n 2^-53 of the same magnitude.
static inline void projection_oracle_row(const struct tensor *t, size_t row, double *want,
                                         double *bound) {
    const size_t depth = t[1].shape.rows;
    const size_t cols = t[1].shape.cols;
    const double n = (double)depth;
    const double gamma = n * 0x1p-24 / (1 - n * 0x1p-24) + n * 0x1p-53;
    const float *x = tensor_row(&t[0], 0, row);
    double x_sum = 0;
    for (size_t i = 0; i < depth; i++) {
        x_sum += fabs((double)x[i]);
    }
    for (size_t j = 0; j < cols; j++) {
        want[j] = 0;
        bound[j] = 0x1p-126 * (2 * n + x_sum);
    }
    // Along the rows of W, which lie in memory that way.
    for (size_t i = 0; i < depth; i++) {
        const float *w = tensor_row(&t[1], 0, i);
        const double input = (double)x[i];
        for (size_t j = 0; j < cols; j++) {
            const double product = input * (double)w[j];
            want[j] += product;
            bound[j] += gamma * fabs(product) + 0x1p-126 * fabs((double)w[j]);
        }
    }
    for (size_t j = 0; j < cols; j++) {
        bound[j] = isfinite(want[j]) ? bound[j] : 0x1p-126;
    }
}

static inline double projection_flops(const struct problem *problem, size_t outputs) {
    return 2 * (double)projection_tokens(problem) * (double)projection_depth(problem) *
           (double)outputs;
}

static inline void projection_bytes(const struct problem *problem, size_t outputs, double *read,
                                    double *written) {
    const double tokens = (double)projection_tokens(problem);
    const double depth = (double)projection_depth(problem);
    *read = 4 * depth * (tokens + (double)outputs);
    *written = 4 * tokens * (double)outputs;
}

static const char *const projection_classes[] = {
    "normal", "uniform", "equal",    "one_huge", "ramp", "cancel",    "denormal",
    "e30",    "signs",   "negative", "nan",      "inf",  "minus_inf", NULL};

#endif
