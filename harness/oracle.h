/// The judge: the double-precision result of a problem with its error bounds, and the comparison of
/// a kernel's output with it.
#ifndef MHA_ORACLE_H
#define MHA_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffers.h"
#include "data.h"
#include "op.h"
#include "results.h"

/// Expected rows of a problem's output. Above 1 GFLOP it holds a seeded sample of the rows.
struct oracle {
    const struct op_driver *driver;
    const struct problem *problem;
    bool special;  ///< The data holds NaN or infinities: unsampled rows need not be finite.
    size_t cols;
    size_t count;          ///< Rows held.
    size_t *planes;        ///< [count]
    size_t *rows;          ///< [count]
    double *want;          ///< [count][cols]
    double *bound;         ///< [count][cols]
    double checked_share;  ///< Rows held / rows of the output.
};

/// Computes the expected rows on `threads` threads from the inputs in `tensors`. Returns false when
/// memory cannot be had.
bool oracle_make(struct oracle *oracle, const struct op_driver *driver,
                 const struct problem *problem, const struct tensor *tensors,
                 const struct data_class *data, uint64_t seed, int threads);

void oracle_free(struct oracle *oracle);

/// What the comparison found.
struct judgement {
    enum verdict verdict;    ///< PASSED, FAILED or MISTRUSTED.
    double max_ulp;          ///< Largest error in units of the last place of the expected value.
    double bound_share;      ///< Largest error / bound.
    size_t plane, row, col;  ///< Of the worst element; of the first wrong one when FAILED.
    char reason[384];        ///< One line: where, expected, got, bad lanes. Empty when PASSED.
};

/// Compares an output element by element: NaN only matches NaN, an infinity its like, all else
/// !(|got - want| <= bound) is wrong. Rows that the oracle does not hold must be written, and
/// finite unless the data is special. MISTRUSTED: all of it is right, but zeros, or one constant,
/// would have been right too.
void oracle_judge(const struct oracle *oracle, const struct tensor *output, int threads,
                  struct judgement *judgement);

#endif
