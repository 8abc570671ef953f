/// The canary: two short loops that run on every thread of a team before and after a sample, to
/// tell whether the machine was ours meanwhile.
#ifndef MHA_CANARY_H
#define MHA_CANARY_H

#include <stdbool.h>
#include <stddef.h>

#include "mha_kernel.h"

/// What one look says; the slowest thread counts.
struct canary {
    double decrement_ns;  ///< Time per dependent decrement: one core cycle.
    double fma_ns;        ///< Time per round of independent FMAs; 0 without a peak kernel.
};

/// Looks on `threads` threads. `peak` is the peak kernel of the ISA that is timed, or NULL.
struct canary canary_look(int threads, const struct mha_kernel *peak);

/// The looks taken beside one kernel in this launch.
struct canary_history {
    size_t count;
    struct canary *looks;
};

/// Tells whether a sample between two looks was disturbed, held against the history (a kernel's own
/// clock, under AVX-512 say, is its normal state, not a disturbance), and adds both to it.
bool canary_disturbed(struct canary_history *history, struct canary before, struct canary after);

/// Gets the core clock in GHz that the history's looks tell (their median); NAN without any.
double canary_ghz(const struct canary_history *history);

void canary_free(struct canary_history *history);

#endif
