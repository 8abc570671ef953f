/// What the drivers of concat and split share: both move the same elements between the same two
/// shapes.
#ifndef MHA_OPS_HEADS_COPY_H
#define MHA_OPS_HEADS_COPY_H

#include "op.h"

static inline void heads_copy_normalise(struct problem *problem) {
    problem->shape.kv_heads = problem->shape.heads;
    problem->shape.seq_kv = problem->shape.seq_q;
}

/// Names the tensor that has the heads apart, and the one that has them side by side.
static inline struct tensor_shape heads_apart(const struct problem *problem, const char *name,
                                              enum tensor_role role) {
    const struct mha_shape *s = &problem->shape;
    return (struct tensor_shape){.name = name,
                                 .role = role,
                                 .planes = s->batch * s->heads,
                                 .rows = s->seq_q,
                                 .cols = s->head_dim};
}

static inline struct tensor_shape heads_joined(const struct problem *problem, const char *name,
                                               enum tensor_role role) {
    const struct mha_shape *s = &problem->shape;
    return (struct tensor_shape){.name = name,
                                 .role = role,
                                 .planes = s->batch,
                                 .rows = s->seq_q,
                                 .cols = s->heads * s->head_dim};
}

static inline void heads_copy_grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch;
    *rows = problem->shape.seq_q;
}

static inline double heads_copy_flops(const struct problem *problem) {
    (void)problem;
    return 0;
}

static inline void heads_copy_bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    *read = 4 * (double)(s->batch * s->heads) * (double)s->seq_q * (double)s->head_dim;
    *written = *read;
}

static const char *const heads_copy_classes[] = {"normal", "bits", NULL};

#endif
