/// Faults of the position encodings: what implementations of them have been confused about.
#include <stdlib.h>

#include "faults.h"

static void embed_as(const struct mha_embed_args *args, bool segments) {
    for (size_t t = 0; t < args->tokens; t++) {
        const float *token = (const float *)args->token + (size_t)args->ids[t] * args->token_stride;
        const float *position = (const float *)args->position + t * args->position_stride;
        const float *segment = (const float *)args->segment +
                               (segments ? (size_t)args->segments[t] * args->segment_stride : 0);
        for (size_t i = 0; i < args->cols; i++) {
            args->y[t * args->y_stride + i] = (token[i] + position[i]) + segment[i];
        }
    }
}

static void embed_right(const struct mha_embed_args *args, void *memory) {
    (void)memory;
    embed_as(args, true);
}

/// Every token is of the first segment.
static void embed_one_segment(const struct mha_embed_args *args, void *memory) {
    (void)memory;
    embed_as(args, false);
}

static void sinusoid_as(const struct mha_sinusoid_args *args, size_t pe_stride) {
    for (size_t t = 0; t < args->tokens; t++) {
        const float *x = (const float *)args->x + t * args->x_stride;
        for (size_t i = 0; i < args->cols; i++) {
            args->y[t * args->y_stride + i] = x[i] + args->pe[t * pe_stride + i];
        }
    }
}

static void sinusoid_right(const struct mha_sinusoid_args *args, void *memory) {
    (void)memory;
    sinusoid_as(args, args->pe_stride);
}

/// Every token stands at the item's first place.
static void sinusoid_one_place(const struct mha_sinusoid_args *args, void *memory) {
    (void)memory;
    sinusoid_as(args, 0);
}

/// Ways to rotate: the layout, the turn, and what of an odd row's last element.
static void rope_as(const struct mha_rope_args *args, bool half, float turn, bool last) {
    const size_t dim = args->head_dim, pairs = dim / 2;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        for (size_t i = 0; i < pairs; i++) {
            const size_t a = half ? i : 2 * i, b = half ? pairs + i : 2 * i + 1;
            const float cosine = args->cos[r * args->angle_stride + i];
            const float sine = turn * args->sin[r * args->angle_stride + i];
            const float x_a = x[a], x_b = x[b];
            y[a] = x_a * cosine - x_b * sine;
            y[b] = x_a * sine + x_b * cosine;
        }
        if (dim % 2 != 0 && last) {
            y[dim - 1] = x[dim - 1];
        }
    }
}

static void rope_right(const struct mha_rope_args *args, void *memory) {
    (void)memory;
    rope_as(args, args->half, 1, true);
}

/// Pairs of neighbours whatever is asked for.
static void rope_neighbours(const struct mha_rope_args *args, void *memory) {
    (void)memory;
    rope_as(args, false, 1, true);
}

/// Turns the other way.
static void rope_clockwise(const struct mha_rope_args *args, void *memory) {
    (void)memory;
    rope_as(args, args->half, -1, true);
}

/// Leaves the last element of an odd row out.
static void rope_odd_element(const struct mha_rope_args *args, void *memory) {
    (void)memory;
    rope_as(args, args->half, 1, false);
}

/// Ways for a bias to be wrong.
enum {
    NO_FIRST_ROW = 1 << 0,    ///< Takes the item's first row for the sequence's.
    FROM_FIRST_KEY = 1 << 1,  ///< The first query stands at the first key.
    LIMIT_OFF = 1 << 2,       ///< A bucket's first distance counts to the one before.
    MIRRORED = 1 << 3,        ///< Query less key.
};

static void bias_as(const struct mha_bias_args *args, unsigned how) {
    const struct mha_bias *bias = &args->bias;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        const size_t row = r + (how & NO_FIRST_ROW ? 0 : args->first_row);
        const ptrdiff_t position =
            (ptrdiff_t)row +
            (how & FROM_FIRST_KEY ? 0 : (ptrdiff_t)bias->seq_kv - (ptrdiff_t)bias->seq_q);
        for (size_t c = 0; c < args->cols; c++) {
            ptrdiff_t distance = (ptrdiff_t)c - position;
            distance = how & MIRRORED ? -distance : distance;
            if ((how & LIMIT_OFF) && distance < 0) {
                distance++;
            }
            args->y[r * args->y_stride + c] =
                x[c] + (bias->kind == MHA_BIAS_ALIBI
                            ? -bias->slopes[0] * (float)labs(distance)
                            : bias->table[mha_t5_bucket(distance, bias->causal)]);
        }
    }
}

#define BIAS_AS(tag, how)                                                    \
    static void bias_##tag(const struct mha_bias_args *args, void *memory) { \
        (void)memory;                                                        \
        bias_as(args, how);                                                  \
    }

static void bias_right(const struct mha_bias_args *args, void *memory) {
    (void)memory;
    bias_as(args, 0);
}

BIAS_AS(no_first_row, NO_FIRST_ROW)
BIAS_AS(from_first_key, FROM_FIRST_KEY)
BIAS_AS(bucket_off, LIMIT_OFF)
BIAS_AS(mirrored, MIRRORED)

const struct mha_library_entry position_faults[] = {
    FAULT(embed, one_segment, .flags = 0),
    FAULT(sinusoid, one_place, .flags = 0),
    FAULT(rope, neighbours, .flags = 0),
    FAULT(rope, clockwise, .flags = 0),
    FAULT(rope, odd_element, .flags = 0),
    FAULT(bias, no_first_row, .flags = 0),
    FAULT(bias, from_first_key, .flags = 0),
    FAULT(bias, bucket_off, .flags = 0),
    FAULT(bias, mirrored, .flags = 0),
    // Last, so that they run after the kernels that go wrong.
    FAULT(embed, right, .flags = 0),
    FAULT(sinusoid, right, .flags = MHA_FLAG_IN_PLACE),
    FAULT(rope, right, .flags = MHA_FLAG_IN_PLACE),
    FAULT(bias, right, .flags = MHA_FLAG_IN_PLACE),
};
const size_t position_fault_count = sizeof(position_faults) / sizeof(position_faults[0]);
