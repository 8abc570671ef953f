/// pv by a library's matrix product. Algorithm and error bound: pv_blocks.inl.
#include "pv_blocks.inl"

static void run(const struct mha_pv_args *args, void *workspace) {
    for (size_t h = 0; h < args->heads && args->rows > 0; h++) {
        head(args, h, NULL, workspace);
    }
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    (void)shape;
    return sizeof(peer_element[BLOCK_ROWS][EDGE_KEYS]);
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return peer_takes_depth(shape->seq_kv, why) && product_supports(shape, why);
}

#ifdef PRODUCT_PREPARES
/// Prepares an item of whole heads with dense rows; others are made when they come.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    void *state = product_new();
    const struct mha_pv_args args = {
        .rows = shape->seq_q,
        .seq_kv = shape->seq_kv,
        .head_dim = shape->head_dim,
        .mask = *mask,
        .p_stride = shape->seq_kv,
        .v_stride = shape->head_dim,
        .o_stride = shape->head_dim,
    };
    if (state && args.rows > 0 && !head(&args, 0, state, NULL)) {
        product_free(state);
        state = NULL;
    }
    return state;
}
#endif

const struct mha_kernel PEER_KERNEL(pv) = {
    PEER_NAMES(pv),
    .summary = PRODUCT_SUMMARY " over the keys that blocks of rows see",
    .flags = MHA_FLAG_PEER,
    .run = {.pv = run},
    .workspace_bytes = workspace_bytes,
    .supports = supports,
#ifdef PRODUCT_PREPARES
    .create = create,
    .destroy = product_free,
#endif
};
