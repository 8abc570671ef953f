/// softmax on a vector library's expf. Includers define what expf_span.inl asks for, PEER_ISA,
/// PEER_LIBRARY, PEER_READY(why), which tells whether the library runs at the level of its name,
/// and PEER_SUMMARY. Algorithm and error bound: expf_span.inl.
#include "expf_span.inl"
#include "mha_kernel.h"
#include "peer_name.h"

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
    for (size_t i = 0; i < count; i += LANES) {
        lanes_store(y + i, PEER_EXP(lanes_load(x + i, count - i)), count - i);
    }
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)shape;
    (void)mask;
    return PEER_READY(why);
}

const struct mha_kernel PEER_KERNEL(softmax) = {
    PEER_NAMES(softmax),
    .summary = PEER_SUMMARY,
    .run = {.softmax = run},
    .supports = supports,
    .step = STEP,
    .flags = MHA_FLAG_PEER | MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
