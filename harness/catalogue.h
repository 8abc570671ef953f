/// What kernels there are, as the parent knows it: told by a worker, since only workers load
/// kernels.
#ifndef MHA_CATALOGUE_H
#define MHA_CATALOGUE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "machine.h"
#include "options.h"
#include "problem.h"

struct catalogue_kernel {
    char *name, *op, *dtype, *isa, *tag, *summary;
    char *plugin;  ///< NULL for ours and the peers.
    char *code_hash;
    char *library, *version;
    bool peer;
    bool exponential;  ///< It gives its exp_f32.
    size_t step;
    double flops_per_step;  ///< peak kernels only, else 0.
    bool runs;              ///< This CPU, and --max-isa, allow it.
    const char *why_not;    ///< One phrase when !runs.
};

struct catalogue {
    size_t count;
    struct catalogue_kernel *kernels;
};

/// Asks a worker. Returns EXIT_DONE, or EXIT_USAGE when a plug-in or the library cannot be used
/// (said already).
int catalogue_load(struct catalogue *catalogue, const struct options *options,
                   const struct machine *machine);

/// Adds a kernel that a worker tells of in an event "kernel". `max_isa` may be NULL.
void catalogue_add(struct catalogue *catalogue, const json_t *event, const char *max_isa);

/// Makes what a worker's job says of --with: ["OP=KERNEL", ...].
json_t *catalogue_with(const struct options *options);

/// Writes the options by which a command line that repeats a case finds its code: the plug-in of a
/// kernel, or the plug-ins and steps of a pipeline.
void catalogue_repro(char *text, size_t size, const struct options *options, const char *op,
                     const char *plugin);

/// Tells whether the options' filters (op, dtype, isa, kernel globs) let a kernel through. Ceilings
/// only pass when an option names them.
bool catalogue_selects(const struct options *options, const struct catalogue_kernel *kernel);

/// Tells whether a kernel is of a problem's op and dtype.
bool catalogue_fits(const struct catalogue_kernel *kernel, const struct problem *problem);

/// Tells whether anything selected runs here; when not, says why on stderr and returns
/// EXIT_CANNOT_RUN (an ISA is lacking) or EXIT_USAGE (no kernel of that name).
int catalogue_require(const struct catalogue *catalogue, const struct options *options);

/// Chooses the kernel that does `op` as one step of several: the one that --with names, else of
/// those that --isa and --max-isa allow, peers and plug-ins left out, that of the widest ISA, a
/// hand-written one before what the compiler vectorised, and of several the first. Returns
/// EXIT_DONE; else says why there is none and returns EXIT_CANNOT_RUN (an ISA is lacking) or
/// EXIT_USAGE.
int catalogue_choose(const struct catalogue *catalogue, const struct options *options,
                     const char *op, const struct catalogue_kernel **kernel);

/// Tells whether an ISA word is `other`, or a set of features that holds it: a word that goes on
/// from another adds to it.
bool catalogue_isa_holds(const char *isa, const char *other);

/// Tells whether an ISA word may run: compiled, had by the CPU, enabled by the system, within
/// --max-isa.
bool catalogue_isa_runs(const char *isa, const char *max_isa, const char **why_not);

/// Tells whether times mean nothing here: an emulator, or code that stands in for an ISA.
bool catalogue_emulated(const struct machine *machine);

void catalogue_free(struct catalogue *catalogue);

#endif
