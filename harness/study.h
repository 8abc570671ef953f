/// The claims of the literature that `study` measures: which rows they need, and how the rows are
/// read.
#ifndef MHA_STUDY_H
#define MHA_STUDY_H

#include <stdbool.h>
#include <stddef.h>

#include "measurement.h"

/// Kernels that a study runs: one an op, and the two ways to compose the layer.
enum study_kernel {
    STUDY_QK,
    STUDY_SOFTMAX,
    STUDY_PV,
    STUDY_SDPA,
    STUDY_QKV_PROJ,
    STUDY_OUT_PROJ,
    STUDY_UNFUSED,
    STUDY_FUSED,
    STUDY_KERNELS,
};

enum study_verdict { STUDY_HOLDS, STUDY_FAILS, STUDY_INCONCLUSIVE };

/// Gets "HOLDS", "DOES NOT HOLD" or "INCONCLUSIVE".
const char *study_verdict_text(enum study_verdict verdict);

/// A measured number with its interval; NANs where it is not known.
struct study_measure {
    char what[100];
    const char *unit;  ///< "" for a ratio.
    double value, low, high;
    bool judged;         ///< The verdict rests on it: the claim asks for
    double least, most;  ///< an interval that lies within these.
};

struct study_claim {
    char id[8];
    char claim[200];
    char criterion[300];
    size_t count;
    struct study_measure *measures;  ///< [count]
    enum study_verdict verdict;
    char why[400];  ///< What the verdict rests on, in one line.
};

struct study {
    struct measurement *m;
    const struct catalogue_kernel *kernels[STUDY_KERNELS];
    int many;  ///< The larger number of threads; 1 when there is none.
    size_t problems;
    struct problem *problem;  ///< [problems]
    size_t count;
    struct study_claim *claims;  ///< [count]
};

/// Adds the rows that the claims need to the measurement.
void study_plan(struct study *study);

/// Reads the measured rows: makes the claims.
void study_read(struct study *study);

void study_free(struct study *study);

#endif
