/// split by libxsmm's matrix copy: the heads apart, one generated copy per head and block of
/// tokens.
#include "heads_copy_libxsmm.inl"

static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)mask;
    return create_copy(shape, shape->heads * shape->head_dim, shape->head_dim);
}

static void run(const struct mha_split_args *args, void *workspace) {
    (void)workspace;
    copy_heads(args->state, args->heads, args->tokens, args->head_dim, args->x, args->head_dim,
               args->x_stride, args->y, args->y_head_stride, args->y_stride);
}
