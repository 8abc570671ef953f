/// Plain kernels that are right: controls, and what the faulty ones do beside their fault.
#include <math.h>
#include <string.h>

#include "faults.h"

void softmax_right(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        float max = -INFINITY, sum = 0;
        for (size_t c = span.begin; c < span.end; c++) {
            max = isnan(x[c]) || x[c] > max ? x[c] : max;
            if (isnan(max)) {
                break;
            }
        }
        const bool none = isinf(max) && max < 0;
        for (size_t c = 0; c < args->cols; c++) {
            const bool seen = c >= span.begin && c < span.end && !none;
            y[c] = seen ? expf(x[c] - max) : 0;
            sum += y[c];
        }
        for (size_t c = span.begin; c < span.end && !none; c++) {
            y[c] /= sum;
        }
    }
}

void qk_right(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *q = (const float *)args->q + h * args->q_head_stride + r * args->q_stride;
            float *s = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const float *k = (const float *)args->k + j * args->k_stride;
                float sum = 0;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += q[i] * k[i];
                }
                s[j] = args->scale * sum;
            }
        }
    }
}

void pv_right(const struct mha_pv_args *args, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *p = (const float *)args->p + h * args->p_head_stride + r * args->p_stride;
            float *o = args->o + h * args->o_head_stride + r * args->o_stride;
            const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
            for (size_t i = 0; i < args->head_dim; i++) {
                float sum = 0;
                for (size_t j = span.begin; j < span.end; j++) {
                    sum += p[j] * ((const float *)args->v)[j * args->v_stride + i];
                }
                o[i] = sum;
            }
        }
    }
}

void qkv_proj_right(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t j = 0; j < args->cols; j++) {
            float sum = 0;
            for (size_t i = 0; i < args->depth; i++) {
                sum += ((const float *)args->x)[r * args->x_stride + i] *
                       ((const float *)args->w)[i * args->w_stride + j];
            }
            args->y[r * args->y_stride + j] = sum;
        }
    }
}

void out_proj_right(const struct mha_proj_args *args, void *workspace) {
    qkv_proj_right(args, workspace);
}

void concat_right(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        for (size_t h = 0; h < args->heads; h++) {
            memcpy((float *)args->y + t * args->y_stride + h * args->head_dim,
                   (const float *)args->x + h * args->x_head_stride + t * args->x_stride,
                   args->head_dim * sizeof(float));
        }
    }
}

void split_right(const struct mha_split_args *args, void *workspace) {
    (void)workspace;
    for (size_t t = 0; t < args->tokens; t++) {
        for (size_t h = 0; h < args->heads; h++) {
            memcpy((float *)args->y + h * args->y_head_stride + t * args->y_stride,
                   (const float *)args->x + t * args->x_stride + h * args->head_dim,
                   args->head_dim * sizeof(float));
        }
    }
}

const struct mha_library_entry right_kernels[] = {
    FAULT(softmax, right, .flags = 0),  FAULT(qk, right, .flags = 0),
    FAULT(pv, right, .flags = 0),       FAULT(qkv_proj, right, .flags = 0),
    FAULT(out_proj, right, .flags = 0), FAULT(concat, right, .flags = 0),
    FAULT(split, right, .flags = 0),
};
const size_t right_kernel_count = sizeof(right_kernels) / sizeof(right_kernels[0]);
