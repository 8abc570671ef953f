/// qkv_proj and out_proj by a library's matrix product: Y = X * W, one product per item. Includers
/// define PROJ_OP, the op's word. Error: that of the product, see the library's .c.
#include "mha_kernel.h"
#include "peer_name.h"

static struct product product_of(const struct mha_proj_args *args) {
    return (struct product){
        .rows = args->rows,
        .cols = args->cols,
        .depth = args->depth,
        .a = args->x,
        .a_stride = args->x_stride,
        .b = args->packed ? args->packed : args->w,
        .b_stride = args->packed ? args->cols : args->w_stride,
        .b_is = args->packed ? B_PACKED : B_PLAIN,
        .plain = args->w,
        .plain_stride = args->w_stride,
        .c = args->y,
        .c_stride = args->y_stride,
        .factor = 1,
    };
}

static void run(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    if (args->rows > 0 && args->cols > 0) {
        const struct product product = product_of(args);
        product_run(args->state, &product);
    }
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return product_supports(shape, why);
}

#ifdef PRODUCT_PREPARES
static size_t packed_bytes(const struct mha_shape *shape) {
    return product_packed_bytes(shape->heads * shape->head_dim, MHA_PROJ_COLS);
}

static void pack(const struct mha_proj_args *args, void *packed) {
    const struct product product = product_of(args);
    product_pack(args->state, &product, packed);
}

/// What is made depends on the width of a piece, which only the items tell.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)shape;
    (void)mask;
    return product_new();
}
#endif

const struct mha_kernel PEER_KERNEL(PROJ_OP) = {
    PEER_NAMES(PROJ_OP),       .summary = PRODUCT_SUMMARY ", one per item",
    .flags = MHA_FLAG_PEER,    .run = {.PROJ_OP = run},
    .supports = supports,
#ifdef PRODUCT_PREPARES
    .pack = {.PROJ_OP = pack}, .packed_bytes = packed_bytes,
    .create = create,          .destroy = product_free,
#endif
};
