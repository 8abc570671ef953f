/// What the drivers of the bandwidth ceilings share: `batch` planes of seq_kv elements, each plane
/// an item.
#ifndef MHA_OPS_STREAM_H
#define MHA_OPS_STREAM_H

#include <math.h>

#include "op.h"

/// Most elements of one plane: sums of whole numbers stay exact up to 2^24 (see read.c).
#define STREAM_PLANE_ELEMENTS ((size_t)1 << 22)

/// Elements of a cache line.
#define STREAM_LINE 16

struct stream_planes {
    size_t planes;
    size_t count;  ///< Elements of each.
};

/// Cuts a stream of some `elements` into planes, as many for each of the threads, of whole cache
/// lines, at least one: a plane that begins amid a line has no turn of a streaming copy in whole
/// lines, and is copied at half the rate.
static inline struct stream_planes stream_planes_of(double elements, size_t threads) {
    size_t planes = threads;
    while (elements / (double)planes > (double)STREAM_PLANE_ELEMENTS) {
        planes *= 2;
    }
    const double lines = fmax(1, elements / (STREAM_LINE * (double)planes));
    return (struct stream_planes){planes, (size_t)lines * STREAM_LINE};
}

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
