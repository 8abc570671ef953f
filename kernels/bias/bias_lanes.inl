/// bias, f32, over the vector of one ISA. Includers define MHA_ISA_NAME, MHA_KERNEL_SYMBOL and what
/// lanes.h asks for.
///
/// Algorithm: ALiBi's distances are counted in the lanes, so that nothing but the scores is read.
/// T5's buckets are looked up once an item, see bias_strip.h; where they are constant, so is the
/// vector that is added.
///
/// Error: ALiBi one rounding (fused), T5 one. Tail: see lanes.h. Registers: 12 vectors at most.
#include "bias/bias_strip.h"
#include "lanes.h"
#include "mha_kernel.h"

struct alibi {
    const float *x;
    float slope;
    float position;
};

static inline lanes add_slope(const void *inputs, size_t i, lanes at, size_t n) {
    const struct alibi *in = inputs;
    const lanes far = lanes_abs(lanes_sub(at, lanes_set(in->position)));
    return lanes_fnma(lanes_set(in->slope), far, lanes_load(in->x + i, n));
}

static void alibi_rows(const struct mha_bias_args *args, struct lanes_out *out) {
    for (size_t r = 0; r < args->rows; r++) {
        const struct alibi in = {(const float *)args->x + r * args->x_stride, args->bias.slopes[0],
                                 (float)bias_position(args, r)};
        lanes_row(add_slope, &in, 0, args->cols, args->y + r * args->y_stride, out);
    }
}

struct constant {
    const float *x;
    float value;
};

static inline lanes add_constant(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    const struct constant *in = inputs;
    return lanes_add(lanes_load(in->x + i, n), lanes_set(in->value));
}

struct window {
    const float *x;
    const float *strip;
};

static inline lanes add_window(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    const struct window *in = inputs;
    return lanes_add(lanes_load(in->x + i, n), lanes_load(in->strip + i, n));
}

static void t5_rows(const struct mha_bias_args *args, struct lanes_out *out) {
    struct bias_strip strip;
    bias_strip_make(&strip, &args->bias);
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        float *y = args->y + r * args->y_stride;
        const struct bias_parts parts = bias_parts_of(&strip, bias_position(args, r), args->cols);
        const struct constant behind = {x, strip.behind}, ahead = {x, strip.ahead};
        const struct window window = {x + parts.begin, parts.window};
        lanes_row(add_constant, &behind, 0, parts.begin, y, out);
        lanes_row(add_window, &window, 0, parts.end - parts.begin, y + parts.begin, out);
        lanes_row(add_constant, &ahead, parts.end, args->cols, y + parts.end, out);
    }
}

static void run(const struct mha_bias_args *args, void *workspace) {
    (void)workspace;
    struct lanes_out out = {0};
    if (args->bias.kind == MHA_BIAS_ALIBI) {
        alibi_rows(args, &out);
    } else {
        t5_rows(args, &out);
    }
    lanes_done(&out);
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "bias_f32_" MHA_ISA_NAME "_" LANES_TAG,
    .op = "bias",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = LANES_TAG,
    .summary = LANES_SUMMARY,
    .run = {.bias = run},
    .step = LANES_STEP,
    .flags = MHA_FLAG_IN_PLACE,
};
