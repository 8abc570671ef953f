/// Last words of a worker: when a kernel touches memory that it must not, the handler says which
/// tensor's guard page it was before the signal takes its course.
///
/// Events: {"event": "fault", "text": "read behind k, at its end + 0 bytes"}
#ifndef MHA_FAULT_REPORT_H
#define MHA_FAULT_REPORT_H

#include <stddef.h>

/// Installs the handlers of SIGSEGV and SIGBUS, which write to `event_fd`.
void fault_report_start(int event_fd);

/// Gives the calling thread a stack of its own for the handler: it runs even where the thread's
/// stack is used up or damaged. A thread's second call does nothing.
void fault_report_thread(void);

/// Makes a mapping known: `bytes` from `first` on belong to the tensor (or workspace) `name`, the
/// rest of the mapping lies before or behind it. `name` must live until the mapping is forgotten.
/// Beyond a few dozen mappings further ones stay unknown.
void fault_report_watch(const char *name, const void *map, size_t map_bytes, const void *first,
                        size_t bytes);

/// Forgets a mapping; one that is not known is ignored.
void fault_report_forget(const void *map);

/// Sends `text` as the fault and aborts: for damage after which this process is not to be trusted.
_Noreturn void fault_report_abort(const char *text);

#endif
