/// concat by oneDNN's reorder primitive, one per item. A copy: exact.
#include "mha_kernel.h"
#include "onednn.h"
#include "peer_name.h"

static struct onednn_copy copy_of(const struct mha_concat_args *args) {
    return (struct onednn_copy){
        .planes = args->heads,
        .rows = args->tokens,
        .cols = args->head_dim,
        .x = args->x,
        .x_plane_stride = args->x_head_stride,
        .x_stride = args->x_stride,
        .y = args->y,
        .y_plane_stride = args->head_dim,
        .y_stride = args->y_stride,
    };
}

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    if (args->tokens > 0) {
        const struct onednn_copy copy = copy_of(args);
        onednn_copy_run(args->state, &copy);
    }
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return product_supports(shape, why);
}

/// Prepares an item of all tokens of a sequence, dense; others are made when they come.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)mask;
    void *state = product_new();
    const struct mha_concat_args args = {
        .heads = shape->heads,
        .tokens = shape->seq_q,
        .head_dim = shape->head_dim,
        .x_head_stride = shape->seq_q * shape->head_dim,
        .x_stride = shape->head_dim,
        .y_stride = shape->heads * shape->head_dim,
    };
    const struct onednn_copy copy = copy_of(&args);
    if (state && args.tokens > 0 && !onednn_copy_prepare(state, &copy)) {
        product_free(state);
        state = NULL;
    }
    return state;
}

const struct mha_kernel PEER_KERNEL(concat) = {
    PEER_NAMES(concat),      .summary = "reorder primitive, one per item",
    .flags = MHA_FLAG_PEER,  .run = {.concat = run},
    .supports = supports,    .create = create,
    .destroy = product_free,
};
