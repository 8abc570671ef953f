/// The worker: a fresh process that loads kernels and runs them, and may die of it.
#ifndef MHA_WORKER_H
#define MHA_WORKER_H

#include <jansson.h>
#include <stdint.h>

#include "library.h"

/// The argument that makes the program a worker.
#define WORKER_ARGUMENT "__worker"

/// Where the job comes from and where events go.
enum { WORKER_JOB_FD = 3, WORKER_EVENT_FD = 4 };

/// Everything a job's part needs to know.
struct worker {
    const json_t *job;
    struct kernel_table table;
    uint64_t seed;
    int threads_allowed;
};

/// Reads the job, does it, sends "done". Returns the exit code of the process.
int worker_main(void);

/// check.c: verdicts over data classes, layouts and item cuts. Job member "tasks".
void worker_check(struct worker *worker);

/// exponential.c: verdicts over the exponentials of softmax kernels. Job member "exponentials".
void worker_exponential(struct worker *worker);

/// Sends an event "kernel" for each kernel of a table; `side` tells tables apart.
void worker_send_kernels(const struct kernel_table *table, int side);

/// attend.c: what heads look at. Job members "heads", "tokens", "causal", "kernels".
void worker_attend(struct worker *worker);

/// measure.c: one launch: verdicts, samples and ceilings. Job member "problems".
void worker_measure(struct worker *worker);

#endif
