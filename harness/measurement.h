/// A measurement: rows that are measured together and written to one result file. What the commands
/// that measure single builds share.
#ifndef MHA_MEASUREMENT_H
#define MHA_MEASUREMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "catalogue.h"
#include "machine.h"
#include "options.h"
#include "results.h"

struct measurement {
    const struct options *options;
    const struct machine *machine;
    size_t problems;
    const struct problem *problem;  ///< [problems], set by the caller before measurement_take().
    double default_budget_s;        ///< As schedule.h has them; set by the caller.
    size_t default_launches;
    size_t default_samples;
    // filled by the functions below
    struct catalogue catalogue;
    struct result result;
    size_t *row_problem;           ///< [result.count]
    struct ceiling_list ceilings;  ///< After measurement_take().
    bool interrupted;
    double min_time_s;  ///< Of a sample; without an option what measurement_begin() sets or the
                        ///< caller after it.
    char out[512], journal[600];
    json_int_t started;
};

/// Asks for the kernels and chooses the result file, both by the options. Returns EXIT_DONE, or
/// what is wrong, said already. measurement_end() is right after every outcome.
int measurement_begin(struct measurement *m, const struct options *options,
                      const struct machine *machine);

/// Adds a row: a kernel on a problem, by the problem's index. `problem` must be set, and may grow
/// between calls.
void measurement_add(struct measurement *m, size_t problem, const struct catalogue_kernel *kernel,
                     int threads);

/// Measures all rows and derives what follows from the samples. Rows without a time say why.
/// Returns as schedule_run() does.
int measurement_take(struct measurement *m);

/// Writes the result file, calls `print` for what goes to stdout, and tells where the file is.
/// `print` gets the file's JSON. Returns EXIT_DONE, or EXIT_USAGE when something cannot be written.
int measurement_report(struct measurement *m, void (*print)(void *context, const json_t *file),
                       void *context);

/// Gets the exit code that the rows' verdicts ask for.
int measurement_exit(const struct measurement *m);

/// Frees everything. When a signal interrupted the measurement the process ends of it.
void measurement_end(struct measurement *m);

#endif
