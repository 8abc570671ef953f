/// The context of a result file: who measured what, with which build, on which machine.
#ifndef MHA_RUN_CONTEXT_H
#define MHA_RUN_CONTEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "catalogue.h"
#include "machine.h"
#include "options.h"
#include "results.h"

/// Remembers the command line, for the context.
void run_context_command(int argc, char **argv);

/// Refuses --benchmark_context keys that a result file has already: prints one line and returns
/// EXIT_USAGE.
int run_context_check(const struct options *options);

/// Makes the whole `context` object. `min_time_s` is the length of a
/// sample, NAN where none was taken; `started` is in seconds since 1970.
json_t *run_context(const struct options *options, const struct machine *machine,
                    const struct catalogue *catalogue, const struct ceiling_list *ceilings,
                    double min_time_s, json_int_t started, bool interrupted);

#endif
