/// The parent's side of checking exponentials: which kernels, the worker, and the report.
#ifndef MHA_CHECK_EXPONENTIAL_H
#define MHA_CHECK_EXPONENTIAL_H

#include <jansson.h>
#include <stdio.h>

#include "catalogue.h"
#include "results.h"

/// What is known of one kernel's exponential.
struct exponential {
    const struct catalogue_kernel *kernel;
    enum verdict verdict;
    double max_ulp;  ///< Largest error of a normal result.
    double at;       ///< Where it is.
    size_t floats;   ///< Tried.
    char *reason;    ///< One line, or NULL.
};

struct exponential_list {
    size_t count;
    struct exponential *items;
};

/// Checks the exponential of every kernel of the selection that gives one and can run here: every
/// float of the domain with --exhaustive, else a seeded sample. Returns EXIT_DONE, or EXIT_USAGE
/// when --exhaustive finds nothing to walk or a plug-in was refused (said already).
int exponential_check(struct exponential_list *list, const struct options *options,
                      const struct machine *machine, const struct catalogue *catalogue, int threads,
                      bool progress);

/// Prints one line per kernel, with what to repeat after a failure. Returns the exit code that the
/// verdicts ask for.
int exponential_report(const struct exponential_list *list, const struct options *options,
                       FILE *out);

json_t *exponential_to_json(const struct exponential_list *list, const struct options *options);

void exponential_free(struct exponential_list *list);

#endif
