/// How many keys the queries of a problem see: what the ops under a mask count their work by.
#ifndef MHA_OPS_VISIBLE_H
#define MHA_OPS_VISIBLE_H

#include "problem.h"

/// Pairs of a query and a key that it sees, over all sequences of the batch, of one head.
static inline double visible_pairs(const struct problem *problem) {
    double seen = 0;
    for (size_t b = 0; b < problem->shape.batch; b++) {
        const struct mha_mask mask = problem_mask(problem, b);
        for (size_t r = 0; r < problem->shape.seq_q; r++) {
            const struct mha_span span = mha_row_span(&mask, r);
            seen += (double)(span.end - span.begin);
        }
    }
    return seen;
}

/// Keys that any query sees, over all sequences of the batch, of one kv head.
static inline double visible_keys(const struct problem *problem) {
    double seen = 0;
    for (size_t b = 0; b < problem->shape.batch && problem->shape.seq_q > 0; b++) {
        const struct mha_mask mask = problem_mask(problem, b);
        // Spans move forwards from one row to the next, and begin no later than the one before
        // ends.
        const struct mha_span last = mha_row_span(&mask, problem->shape.seq_q - 1);
        seen += (double)(last.end - mha_row_span(&mask, 0).begin);
    }
    return seen;
}

#endif
