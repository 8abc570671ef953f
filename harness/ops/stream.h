/// What the drivers of the bandwidth ceilings share: `batch` planes of seq_kv elements, each plane
/// an item.
#ifndef MHA_OPS_STREAM_H
#define MHA_OPS_STREAM_H

#include "op.h"

static inline void stream_normalise(struct problem *problem) {
    const size_t planes = problem->shape.batch, count = problem->shape.seq_kv;
    problem->shape = (struct mha_shape){planes, 1, 1, 1, count, 1};
}

static inline void stream_grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch;
    *rows = 1;
}

static inline void stream_attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->stream.state = state;
}

/// A ceiling of bandwidth has no arithmetic to be told of.
static inline double stream_flops(const struct problem *problem) {
    (void)problem;
    return 0;
}

/// Bytes of one stream.
static inline double stream_bytes(const struct problem *problem) {
    return 4 * (double)problem->shape.batch * (double)problem->shape.seq_kv;
}

#endif
