#include "wrong.h"

#include <math.h>
#include <string.h>

static const float *row_of(const void *data, size_t row, size_t stride) {
    return (const float *)data + row * stride;
}

/// Scores plus what `place` adds for a key, of the queries of head `head % heads`.
static void scores(const struct mha_qk_args *args, size_t heads, float scale, float place) {
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *q =
                row_of((const float *)args->q + h % heads * args->q_head_stride, r, args->q_stride);
            float *s = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const float *k = row_of(args->k, j, args->k_stride);
                float sum = 0;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += q[i] * k[i];
                }
                s[j] = scale * sum + place * (float)j;
            }
        }
    }
}

static void qk_by_place(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    scores(args, args->heads, args->scale, 0.25f);
}

static void qk_unscaled(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    scores(args, args->heads, 1, 0);
}

static void qk_first_head(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    scores(args, 1, args->scale, 0);
}

/// Weights over the keys of `all` or of those that are seen, divided by their sum or not.
static void weights(const struct mha_softmax_args *args, bool all, bool divide) {
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = row_of(args->x, r, args->x_stride);
        float *y = args->y + r * args->y_stride;
        struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        if (all) {
            span = (struct mha_span){0, args->cols};
        }
        float max = -INFINITY, sum = 0;
        for (size_t c = span.begin; c < span.end; c++) {
            max = fmaxf(max, x[c]);
        }
        for (size_t c = 0; c < args->cols; c++) {
            y[c] = c >= span.begin && c < span.end ? expf(x[c] - max) : 0;
            sum += y[c];
        }
        for (size_t c = span.begin; c < span.end && divide; c++) {
            y[c] /= sum;
        }
    }
}

static void softmax_unmasked(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    weights(args, true, true);
}

static void softmax_undivided(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    weights(args, false, false);
}

static void rope_still(const struct mha_rope_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        memmove(args->y + r * args->y_stride, row_of(args->x, r, args->x_stride),
                args->head_dim * sizeof(float));
    }
}

/// Shrinks each pair by its cosine, and does not turn it.
static void rope_shrinks(const struct mha_rope_args *args, void *workspace) {
    (void)workspace;
    const size_t pairs = args->head_dim / 2;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = row_of(args->x, r, args->x_stride);
        for (size_t i = 0; i < args->head_dim; i++) {
            const size_t pair = args->half ? i % pairs : i / 2;
            args->y[r * args->y_stride + i] = x[i] * args->cos[r * args->angle_stride + pair];
        }
    }
}

static void sinusoid_absent(const struct mha_sinusoid_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        memmove(args->y + t * args->y_stride, row_of(args->x, t, args->x_stride),
                args->cols * sizeof(float));
    }
}

static void bias_absent(const struct mha_bias_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        memmove(args->y + r * args->y_stride, row_of(args->x, r, args->x_stride),
                args->cols * sizeof(float));
    }
}

static void concat_reversed(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        for (size_t h = 0; h < args->heads; h++) {
            memcpy((float *)args->y + t * args->y_stride + (args->heads - 1 - h) * args->head_dim,
                   row_of((const float *)args->x + h * args->x_head_stride, t, args->x_stride),
                   args->head_dim * sizeof(float));
        }
    }
}

/// X times those rows of W from `first` on that a column may see; rows of W `stride` apart.
static void product(const struct mha_proj_args *args, size_t stride, size_t band) {
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = row_of(args->x, r, args->x_stride);
        for (size_t j = 0; j < args->cols; j++) {
            const size_t first = band ? j / band * band : 0;
            const size_t end = band ? first + band : args->depth;
            float sum = 0;
            for (size_t i = first; i < end; i++) {
                sum += x[i] * row_of(args->w, i, stride)[j];
            }
            args->y[r * args->y_stride + j] = sum;
        }
    }
}

/// Takes the rows of its columns of W for adjacent.
static void qkv_proj_dense(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    product(args, args->cols, 0);
}

/// Every 20 columns see the same 20 rows of W only: heads of the tests' width stay apart.
static void out_proj_apart(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    product(args, args->w_stride, 20);
}

#define WRONG(op_, tag_)                                                                \
    {                                                                                   \
        .name = #op_ "_f32_scalar_" #tag_, .op = #op_, .dtype = "f32", .isa = "scalar", \
        .tag = #tag_, .summary = "for the properties' tests", .run = {                  \
            .op_ = op_##_##tag_                                                         \
        }                                                                               \
    }

const struct mha_kernel wrong_kernels[] = {
    WRONG(qk, by_place),      WRONG(qk, unscaled),       WRONG(qk, first_head),
    WRONG(softmax, unmasked), WRONG(softmax, undivided), WRONG(rope, still),
    WRONG(rope, shrinks),     WRONG(sinusoid, absent),   WRONG(bias, absent),
    WRONG(concat, reversed),  WRONG(qkv_proj, dense),    WRONG(out_proj, apart),
};
const size_t wrong_kernel_count = sizeof(wrong_kernels) / sizeof(wrong_kernels[0]);

const struct mha_kernel *wrong_kernel(const char *name) {
    for (size_t i = 0; i < wrong_kernel_count; i++) {
        if (strcmp(wrong_kernels[i].name, name) == 0) {
            return &wrong_kernels[i];
        }
    }
    return NULL;
}
