/// Faults of the result: what users of other kernels have met, one kernel each.
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "faults.h"

// --- softmax
// ------------------------------------------------------------------------------------------

/// Ways for a softmax to be wrong.
enum {
    NO_MAX = 1 << 0,            ///< exp() of the scores as they are.
    MAX_FROM_ZERO = 1 << 1,     ///< The maximum starts at 0.
    NO_FIRST_ROW = 1 << 2,      ///< Takes the item's first row for the sequence's.
    NAN_IS_ZERO = 1 << 3,       ///< A NaN among the scores counts as 0.
    INF_IS_LARGE = 1 << 4,      ///< +inf counts as the largest float.
    DEAD_ROW_IS_NAN = 1 << 5,   ///< A row of -inf divides 0 by 0.
    MASK_MULTIPLIES = 1 << 6,   ///< Masked scores are read and multiplied by 0.
    DEAD_ROW_UNIFORM = 1 << 7,  ///< A row of -inf yields 1 / cols.
};

static void softmax_with(const struct mha_softmax_args *args, unsigned how) {
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        const struct mha_span span =
            mha_row_span(&args->mask, r + (how & NO_FIRST_ROW ? 0 : args->first_row));
        float max = how & MAX_FROM_ZERO ? 0 : -INFINITY, sum = 0;
        bool poisoned = false;
        for (size_t c = 0; c < args->cols; c++) {
            const bool seen = c >= span.begin && c < span.end;
            float value = x[c];
            value = isnan(value) && (how & NAN_IS_ZERO) ? 0 : value;
            value = isinf(value) && value > 0 && (how & INF_IS_LARGE) ? FLT_MAX : value;
            poisoned = poisoned || (seen && (isnan(value) || (isinf(value) && value > 0)));
            max = seen && value > max ? value : max;
            y[c] = value;
        }
        const bool dead = isinf(max) && max < 0;
        max = how & NO_MAX ? 0 : max;
        for (size_t c = 0; c < args->cols; c++) {
            const bool seen = c >= span.begin && c < span.end;
            if (how & MASK_MULTIPLIES) {
                y[c] = expf(fminf(y[c] - max, 80)) * (seen ? 1.0f : 0.0f * x[c]);
            } else {
                y[c] = seen ? expf(y[c] - max) : 0;
            }
            sum += y[c];
        }
        for (size_t c = 0; c < args->cols; c++) {
            const bool seen = c >= span.begin && c < span.end;
            if (dead && !(how & DEAD_ROW_IS_NAN)) {
                y[c] = how & DEAD_ROW_UNIFORM ? 1 / (float)args->cols : 0;
            } else if (seen) {
                y[c] = poisoned ? NAN : y[c] / sum;
            }
        }
    }
}

#define SOFTMAX_WITH(tag, how)                                                     \
    static void softmax_##tag(const struct mha_softmax_args *args, void *memory) { \
        (void)memory;                                                              \
        softmax_with(args, how);                                                   \
    }

SOFTMAX_WITH(no_max, NO_MAX)
SOFTMAX_WITH(max_from_zero, MAX_FROM_ZERO)
SOFTMAX_WITH(no_first_row, NO_FIRST_ROW)
SOFTMAX_WITH(nan_is_zero, NAN_IS_ZERO)
SOFTMAX_WITH(inf_is_large, INF_IS_LARGE)
SOFTMAX_WITH(dead_row_nan, DEAD_ROW_IS_NAN)
SOFTMAX_WITH(dead_row_uniform, DEAD_ROW_UNIFORM)
SOFTMAX_WITH(mask_multiplies, MASK_MULTIPLIES)

static void softmax_empty(const struct mha_softmax_args *args, void *memory) {
    (void)args;
    (void)memory;
}

static void softmax_zeros(const struct mha_softmax_args *args, void *memory) {
    (void)memory;
    for (size_t r = 0; r < args->rows; r++) {
        memset(args->y + r * args->y_stride, 0, args->cols * sizeof(float));
    }
}

static void softmax_constant(const struct mha_softmax_args *args, void *memory) {
    (void)memory;
    for (size_t r = 0; r < args->rows; r++) {
        for (size_t c = 0; c < args->cols; c++) {
            args->y[r * args->y_stride + c] = 1 / (float)args->cols;
        }
    }
}

static void softmax_input(const struct mha_softmax_args *args, void *memory) {
    (void)memory;
    for (size_t r = 0; r < args->rows; r++) {
        memcpy(args->y + r * args->y_stride, (const float *)args->x + r * args->x_stride,
               args->cols * sizeof(float));
    }
}

/// Whole vectors of 8 only: the rest of a row stays as it was.
static void softmax_drops_tail(const struct mha_softmax_args *args, void *memory) {
    float tail[8];
    for (size_t r = 0; r < args->rows; r++) {
        struct mha_softmax_args row = *args;
        row.rows = 1;
        row.first_row += r;
        row.x = (const float *)args->x + r * args->x_stride;
        row.y = args->y + r * args->y_stride;
        float *end = row.y + args->cols / 8 * 8;
        const size_t bytes = args->cols % 8 * sizeof(float);
        memcpy(tail, end, bytes);
        softmax_right(&row, memory);
        memcpy(end, tail, bytes);
    }
}

static void softmax_nan_lane(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    if (args->rows > 0 && args->cols > 5) {
        args->y[5] = NAN;
    }
}

/// Says that it works in place, and reads the input anew after it has written the output.
static void softmax_in_place(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    for (size_t r = 0; r < args->rows; r++) {
        struct mha_softmax_args row = *args;
        row.rows = 1;
        row.first_row += r;
        row.x = (const float *)args->x + r * args->x_stride;
        row.y = args->y + r * args->y_stride;
        softmax_right(&row, memory);
    }
}

/// Leaves the first 2048 results of a longer row at the scale of the maximum up to there.
static void softmax_first_piece(const struct mha_softmax_args *args, void *memory) {
    enum { PIECE = 2048 };
    softmax_right(args, memory);
    for (size_t r = 0; r < args->rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        float first = -INFINITY, max = first;
        for (size_t c = span.begin; c < span.end; c++) {
            max = x[c] > max ? x[c] : max;
            first = c < PIECE ? max : first;
        }
        for (size_t c = span.begin; c < span.end && c < PIECE && first < max; c++) {
            y[c] *= expf(max - first);
        }
    }
}

/// Takes powers of 2 at x log2(e) - max log2(e) by one fused multiply-add, wherever the scores lie:
/// far from 0 the product of the maximum is off by more than all that its row has.
static void softmax_base_two(const struct mha_softmax_args *args, void *memory) {
    const float log2_e = 0x1.715476p+0f;
    softmax_right(args, memory);
    for (size_t r = 0; r < args->rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        float max = -INFINITY, sum = 0;
        for (size_t c = span.begin; c < span.end; c++) {
            max = x[c] > max ? x[c] : max;
        }
        if (!isfinite(max)) {
            continue;
        }
        for (size_t c = span.begin; c < span.end; c++) {
            y[c] = exp2f(fmaf(x[c], log2_e, -(max * log2_e)));
            sum += y[c];
        }
        for (size_t c = span.begin; c < span.end; c++) {
            y[c] /= sum;
        }
    }
}

/// Subtracts the maximum of an earlier row for as long as the sum is neither 0 nor infinite: among
/// the denormals it is neither, and has lost its last bits.
static void softmax_kept_shift(const struct mha_softmax_args *args, void *memory) {
    float shift = 0;
    for (size_t r = 0; r < args->rows; r++) {
        struct mha_softmax_args row = *args;
        row.rows = 1;
        row.first_row += r;
        row.x = (const float *)args->x + r * args->x_stride;
        row.y = args->y + r * args->y_stride;
        const struct mha_span span = mha_row_span(&args->mask, row.first_row);
        const float *x = row.x;
        float max = -INFINITY, sum = 0;
        for (size_t c = span.begin; c < span.end; c++) {
            max = x[c] > max ? x[c] : max;
            sum += expf(x[c] - shift);
        }
        if (r == 0 || !(sum > 0 && sum < INFINITY)) {
            softmax_right(&row, memory);
            shift = isfinite(max) ? max : shift;
            continue;
        }
        for (size_t c = 0; c < args->cols; c++) {
            row.y[c] = c >= span.begin && c < span.end ? expf(x[c] - shift) / sum : 0;
        }
    }
}

// --- qk
// -----------------------------------------------------------------------------------------------

/// Every query head of the group reads the first one's queries.
static void qk_first_head(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args wrong = *args;
    wrong.q_head_stride = 0;
    qk_right(&wrong, memory);
}

static void qk_fixed_scale(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args wrong = *args;
    wrong.scale = 0.5f;
    qk_right(&wrong, memory);
}

/// As right as double precision allows, and then 1.25 times the permitted error away.
static void qk_above_bound(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    const double n = (double)(args->head_dim + 2);
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *q = (const float *)args->q + h * args->q_head_stride + r * args->q_stride;
            float *s = args->s + h * args->s_head_stride + r * args->s_stride;
            for (size_t j = 0; j < args->seq_kv; j++) {
                const float *k = (const float *)args->k + j * args->k_stride;
                double sum = 0, magnitude = 0;
                for (size_t i = 0; i < args->head_dim; i++) {
                    sum += (double)q[i] * (double)k[i];
                    magnitude += fabs((double)q[i] * (double)k[i]);
                }
                const double off = isfinite(magnitude) ? 1.25 * n * 0x1p-24 * magnitude : 0;
                s[j] = (float)((double)args->scale * (sum + off));
            }
        }
    }
}

/// Loses the last elements of heads of 37 and 80.
static void qk_head_sizes(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args wrong = *args;
    wrong.head_dim -= args->head_dim == 37 || args->head_dim == 80 ? args->head_dim % 16 + 4 : 0;
    qk_right(&wrong, memory);
}

/// Right up to the 512th key.
static void qk_late_block(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows && args->seq_kv > 512; r++) {
            args->s[h * args->s_head_stride + r * args->s_stride + 512] = 0;
        }
    }
}

/// Offsets in a type that they outgrow. Through unsigned: an int that overflows may do anything.
#define QK_NARROW(tag, type)                                                                       \
    static void qk_##tag(const struct mha_qk_args *args, void *memory) {                           \
        for (size_t h = 0; h < args->heads; h++) {                                                 \
            for (size_t r = 0; r < args->rows; r++) {                                              \
                struct mha_qk_args row = *args;                                                    \
                row.heads = row.rows = 1;                                                          \
                row.q =                                                                            \
                    (const float *)args->q + (type)(h * args->q_head_stride + r * args->q_stride); \
                row.s = args->s + (type)(h * args->s_head_stride + r * args->s_stride);            \
                qk_right(&row, memory);                                                            \
            }                                                                                      \
        }                                                                                          \
    }

QK_NARROW(offset_u16, uint16_t)
QK_NARROW(offset_32, int32_t)
QK_NARROW(offset_u32, uint32_t)

static size_t one_line(const struct mha_shape *shape) {
    (void)shape;
    return 64;
}

/// Packs the address of K; `qk_packed_last` takes the last one for its own.
static void pack_address(const struct mha_qk_args *args, void *packed) {
    memcpy(packed, &args->k, sizeof(args->k));
}

static const void *last_k;

static void pack_last(const struct mha_qk_args *args, void *packed) {
    pack_address(args, packed);
    last_k = args->k;
}

static void qk_packed(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args own = *args;
    memcpy(&own.k, args->packed, sizeof(own.k));
    qk_right(&own, memory);
}

static void qk_packed_last(const struct mha_qk_args *args, void *memory) {
    struct mha_qk_args wrong = *args;
    wrong.k = last_k;
    qk_right(&wrong, memory);
}

/// Adds up in the workspace without clearing it.
static void qk_workspace_dirty(const struct mha_qk_args *args, void *memory) {
    float *sum = memory;
    qk_right(args, memory);
    if (args->heads > 0 && args->rows > 0 && args->seq_kv > 0) {
        args->s[0] += sum[0];
    }
}

// --- pv
// -----------------------------------------------------------------------------------------------

/// Takes every key, those that are masked with a weight of zero.
static void pv_mask_multiplies(const struct mha_pv_args *args, void *memory) {
    (void)memory;
    for (size_t h = 0; h < args->heads; h++) {
        for (size_t r = 0; r < args->rows; r++) {
            const float *p = (const float *)args->p + h * args->p_head_stride + r * args->p_stride;
            float *o = args->o + h * args->o_head_stride + r * args->o_stride;
            const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
            for (size_t i = 0; i < args->head_dim; i++) {
                float sum = 0;
                for (size_t j = 0; j < args->seq_kv; j++) {
                    const float weight = j >= span.begin && j < span.end ? p[j] : 0;
                    sum += weight * ((const float *)args->v)[j * args->v_stride + i];
                }
                o[i] = sum;
            }
        }
    }
}

/// Leaves the rows that see no key as they are.
static void pv_dead_row(const struct mha_pv_args *args, void *memory) {
    for (size_t r = 0; r < args->rows; r++) {
        struct mha_pv_args row = *args;
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + r);
        row.rows = 1;
        row.first_row += r;
        row.p = (const float *)args->p + r * args->p_stride;
        row.o = args->o + r * args->o_stride;
        if (span.begin < span.end) {
            pv_right(&row, memory);
        }
    }
}

/// Takes the item's first row for the sequence's.
static void pv_no_first_row(const struct mha_pv_args *args, void *memory) {
    struct mha_pv_args wrong = *args;
    wrong.first_row = 0;
    pv_right(&wrong, memory);
}

// --- projections
// -----------------------------------------------------------------------------------------------

/// Right in whole pieces of columns; of a narrower one the last column is the one before it.
static void qkv_proj_last_piece(const struct mha_proj_args *args, void *memory) {
    qkv_proj_right(args, memory);
    for (size_t r = 0; r < args->rows && args->cols > 1 && args->cols < MHA_PROJ_COLS; r++) {
        float *last = args->y + r * args->y_stride + args->cols - 1;
        last[0] = last[-1];
    }
}

/// Sums the inputs in blocks of 128, and loses the third.
static void out_proj_lost_block(const struct mha_proj_args *args, void *memory) {
    struct mha_proj_args part = *args;
    part.depth = args->depth < 256 ? args->depth : 256;
    out_proj_right(&part, memory);
    for (size_t i = 384; i < args->depth; i++) {
        for (size_t r = 0; r < args->rows; r++) {
            for (size_t j = 0; j < args->cols; j++) {
                args->y[r * args->y_stride + j] +=
                    ((const float *)args->x)[r * args->x_stride + i] *
                    ((const float *)args->w)[i * args->w_stride + j];
            }
        }
    }
}

// --- concat, split
// --------------------------------------------------------------------------------------

/// Takes rows for dense.
static void concat_dense(const struct mha_concat_args *args, void *memory) {
    struct mha_concat_args wrong = *args;
    wrong.y_stride = args->heads * args->head_dim;
    concat_right(&wrong, memory);
}

/// Copies through an addition, which loses the sign of zero and flushes or quiets what else it may.
static void concat_adds(const struct mha_concat_args *args, void *memory) {
    concat_right(args, memory);
    for (size_t t = 0; t < args->tokens; t++) {
        for (size_t i = 0; i < args->heads * args->head_dim; i++) {
            volatile float *y = (float *)args->y + t * args->y_stride + i;
            *y = fabsf(*y) < FLT_MIN ? 0 : *y;
        }
    }
}

/// The heads in reverse order.
static void split_reversed(const struct mha_split_args *args, void *memory) {
    for (size_t h = 0; h < args->heads; h++) {
        struct mha_split_args one = *args;
        one.heads = 1;
        one.x = (const float *)args->x + (args->heads - 1 - h) * args->head_dim;
        one.y = (float *)args->y + h * args->y_head_stride;
        split_right(&one, memory);
    }
}

const struct mha_library_entry value_faults[] = {
    FAULT(softmax, no_max, .flags = 0),
    FAULT(softmax, max_from_zero, .flags = 0),
    FAULT(softmax, no_first_row, .flags = 0),
    FAULT(softmax, nan_is_zero, .flags = 0),
    FAULT(softmax, inf_is_large, .flags = 0),
    FAULT(softmax, dead_row_nan, .flags = 0),
    FAULT(softmax, dead_row_uniform, .flags = 0),
    FAULT(softmax, mask_multiplies, .flags = 0),
    FAULT(softmax, empty, .flags = 0),
    FAULT(softmax, zeros, .flags = 0),
    FAULT(softmax, constant, .flags = 0),
    FAULT(softmax, input, .flags = 0),
    FAULT(softmax, drops_tail, .flags = 0),
    FAULT(softmax, nan_lane, .flags = 0),
    FAULT(softmax, in_place, .flags = MHA_FLAG_IN_PLACE),
    FAULT(softmax, kept_shift, .flags = 0),
    FAULT(softmax, base_two, .flags = 0),
    FAULT(softmax, first_piece, .flags = 0),
    FAULT(qk, first_head, .flags = 0),
    FAULT(qk, fixed_scale, .flags = 0),
    FAULT(qk, above_bound, .flags = 0),
    FAULT(qk, head_sizes, .flags = 0),
    FAULT(qk, late_block, .flags = 0),
    FAULT(qk, offset_u16, .flags = 0),
    FAULT(qk, offset_32, .flags = 0),
    FAULT(qk, offset_u32, .flags = 0),
    FAULT(qk, packed, .pack = {.qk = pack_address}, .packed_bytes = one_line),
    FAULT(qk, packed_last, .pack = {.qk = pack_last}, .packed_bytes = one_line),
    FAULT(qk, workspace_dirty, .workspace_bytes = one_line),
    FAULT(pv, mask_multiplies, .flags = 0),
    FAULT(pv, dead_row, .flags = 0),
    FAULT(pv, no_first_row, .flags = 0),
    FAULT(qkv_proj, last_piece, .flags = 0),
    FAULT(out_proj, lost_block, .flags = 0),
    FAULT(concat, dense, .flags = 0),
    FAULT(concat, adds, .flags = 0),
    FAULT(split, reversed, .flags = 0),
};
const size_t value_fault_count = sizeof(value_faults) / sizeof(value_faults[0]);
