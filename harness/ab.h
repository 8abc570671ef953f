/// What the two sides of `ab` share: the worker's part (ab_measure.c), the parent's launches
/// (ab_run.c) and the command.
#ifndef MHA_AB_H
#define MHA_AB_H

#include <stdbool.h>
#include <stddef.h>

#include "ab_stats.h"
#include "machine.h"
#include "options.h"
#include "problem.h"
#include "worker.h"

enum ab_side { AB_BASE, AB_NEW, AB_SIDES };

/// Gets "base" or "new".
const char *ab_side_text(enum ab_side side);

/// Length of one sample, where a call is not longer: long beside the clock's resolution, short
/// beside what disturbs a machine, so that a pair meets the same conditions.
#define AB_SAMPLE_S 0.0005

/// Most pairs of a row in one launch.
enum { AB_PAIRS_MAX = 63 };

// --- the worker's side: ab_measure.c

/// Loads both libraries, in random order. Describes in `error` what is wrong with one.
bool ab_load(const json_t *job, void (*tell)(const char *path), char *error, size_t error_size);

/// One launch: visits every row of the job.
void worker_ab(struct worker *worker);

// --- the parent's side: ab_run.c

/// One kernel on one problem at one thread count, in both libraries.
struct ab_row {
    size_t problem;
    const char *kernel, *isa, *tag;  ///< Owned by the catalogue.
    int threads;
    bool same_code;  ///< Equal code hashes, both known.
    // filled by ab_run()
    struct ab_table *table;   ///< The tested rows or the control; NULL when it is not measured.
    size_t index;             ///< In the table.
    char hash[AB_SIDES][20];  ///< Of the verified outputs, "" before that.
    double call_ns;           ///< The slower side's; 0 when not known.
    double pair_ns;           ///< Time that one pair takes; 0 when not known.
    size_t pairs;             ///< In the launch that is under way.
    bool visited;             ///< In the launch that is under way.
    size_t launches;
    double *ns[AB_SIDES];    ///< [launches] medians.
    bool failed;             ///< One side crashed or is wrong; `reason` tells.
    bool lacking[AB_SIDES];  ///< That side's kernel does not take the shape.
    bool dropped;            ///< Too slow for the budget; `reason` tells.
    char *reason;
};

struct ab_run {
    const struct machine *machine;
    const struct options *options;
    const char *paths[AB_SIDES];
    const struct problem *problems;  ///< All that rows name.
    size_t count;
    struct ab_row *rows;
    double budget_s;
    double rate;
    // filled by ab_run()
    struct ab_table tested, control;
    size_t launches;
    bool interrupted;
};

/// Measures until every row is settled or the budget is spent. Returns EXIT_DONE, or EXIT_USAGE
/// (said already) when the libraries cannot be loaded.
int ab_run(struct ab_run *run);

void ab_run_free(struct ab_run *run);

// --- git revisions: ab_revision.c

/// Gets the kernel library that an operand names: a file, or a git revision of this program's
/// sources, which is then built in a worktree with the compiler and flags of this program. Returns
/// EXIT_DONE, or EXIT_USAGE (said already).
int ab_library(const char *operand, char *path, size_t size);

#endif
