/// The parent's side of the worker: starts it (a fresh exec, since forking alone breaks libgomp),
/// hands it a job, receives its events, and survives whatever a kernel does to it.
#ifndef MHA_SUPERVISOR_H
#define MHA_SUPERVISOR_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "machine.h"

/// How a worker ended.
enum worker_end {
    WORKER_DONE,         ///< It did all of its job.
    WORKER_CRASHED,      ///< A signal, an unexpected exit, or silence before "done".
    WORKER_TIMEOUT,      ///< It said nothing for too long and was killed.
    WORKER_REFUSED,      ///< It reported an error of the user's (a plug-in, ...) and ended; printed
                         ///< already.
    WORKER_INTERRUPTED,  ///< The user stopped us.
};

struct supervisor {
    const struct machine *machine;
    double timeout_s;
    bool timed;  ///< The job times kernels: the threads are pinned, one a CPU, and spin for a
                 ///< moment when a team has ended. Otherwise the system places them, so that jobs
                 ///< that run side by side share the CPUs, and they sleep at once.
    /// Called for every event but "error", "loading" and "done". Borrowed reference.
    void (*on_event)(void *context, const json_t *event);
    void *context;
};

/// Runs one worker over `job` to its end. Describes a crash in `text` ("signal 11 (Segmentation
/// fault)", "exit code 3", "no event for 60 s").
enum worker_end supervisor_run(const struct supervisor *supervisor, const json_t *job, char *text,
                               size_t text_size);

/// Set by SIGINT and SIGTERM while a supervisor runs; holds the signal.
extern volatile sig_atomic_t supervisor_interrupted;

/// Installs the handlers that set it. Without it a signal ends the program at once.
void supervisor_catch_signals(void);

/// Ends the program by the signal that interrupted a supervisor, so that whoever started it sees
/// why; what was printed goes out first. Returns when there was none.
void supervisor_obey_interrupt(void);

#endif
