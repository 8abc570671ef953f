/// qk by a library's matrix product: S = scale * Q * K^T, one product per head over K as it lies,
/// of floats or, with PEER_BF16, of bf16. Error: that of the product, see the library's .c.
#include <math.h>

#include "mha_kernel.h"
#include "peer_element.h"
#include "peer_name.h"

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < args->heads && args->rows > 0 && args->seq_kv > 0; h++) {
        const struct product product = {
            .rows = args->rows,
            .cols = args->seq_kv,
            .depth = args->head_dim,
            .a = (const void *)((const peer_element *)args->q + h * args->q_head_stride),
            .a_stride = args->q_stride,
            .b = args->k,
            .b_stride = args->k_stride,
            .b_is = B_TRANSPOSED,
            .c = args->s + h * args->s_head_stride,
            .c_stride = args->s_stride,
            .factor = args->scale,
            .bf16 = PEER_IS_BF16,
        };
        product_run(args->state, &product);
    }
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return peer_takes_depth(shape->head_dim, why) && product_supports(shape, why);
}

#ifdef PRODUCT_PREPARES
/// Prepares an item of whole heads with dense rows and the usual scale; others are made when they
/// come.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)mask;
    const struct product product = {
        .rows = shape->seq_q,
        .cols = shape->seq_kv,
        .depth = shape->head_dim,
        .a_stride = shape->head_dim,
        .b_stride = shape->head_dim,
        .b_is = B_TRANSPOSED,
        .c_stride = shape->seq_kv,
        .factor = 1.0f / sqrtf((float)shape->head_dim),
        .bf16 = PEER_IS_BF16,
    };
    return product_new_for(&product, shape->seq_q > 0 && shape->seq_kv > 0);
}
#endif

const struct mha_kernel PEER_KERNEL(qk) = {
    PEER_NAMES(qk),         .summary = PRODUCT_SUMMARY ", one per head",
    .flags = MHA_FLAG_PEER, .run = {.qk = run},
    .supports = supports,
#ifdef PRODUCT_PREPARES
    .create = create,       .destroy = product_free,
#endif
};
