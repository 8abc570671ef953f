/// embed, f32, over the vector of one ISA: three gathered rows, summed in one pass. Includers
/// define MHA_ISA_NAME, MHA_KERNEL_SYMBOL and what lanes.h asks for.
///
/// Error: two roundings. Tail: see lanes.h. Registers: 12 vectors at most.
#include "lanes.h"
#include "mha_kernel.h"

struct inputs {
    const float *token;
    const float *position;
    const float *segment;
};

static inline lanes sum(const void *inputs, size_t i, lanes at, size_t n) {
    (void)at;
    const struct inputs *in = inputs;
    const lanes first = lanes_add(lanes_load(in->token + i, n), lanes_load(in->position + i, n));
    return lanes_add(first, lanes_load(in->segment + i, n));
}

static void run(const struct mha_embed_args *args, void *workspace) {
    (void)workspace;
    struct lanes_out out = {0};
    for (size_t t = 0; t < args->tokens; t++) {
        const struct inputs in = {
            (const float *)args->token + (size_t)args->ids[t] * args->token_stride,
            (const float *)args->position + t * args->position_stride,
            (const float *)args->segment + (size_t)args->segments[t] * args->segment_stride};
        lanes_row(sum, &in, 0, args->cols, args->y + t * args->y_stride, &out);
    }
    lanes_done(&out);
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "embed_f32_" MHA_ISA_NAME "_" LANES_TAG,
    .op = "embed",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = LANES_TAG,
    .summary = LANES_SUMMARY,
    .run = {.embed = run},
    .step = LANES_STEP,
};
