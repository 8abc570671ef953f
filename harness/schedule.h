/// The parent's side of a run: launches of the worker, the time budget, crashes, the journal.
#ifndef MHA_SCHEDULE_H
#define MHA_SCHEDULE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "catalogue.h"
#include "machine.h"
#include "options.h"
#include "results.h"

/// Samples of one ceiling beside one problem at one thread count.
struct ceiling_samples {
    size_t problem;
    char kernel[64], kind[16], isa[16], dtype[8], mix[24], level[8];
    double bytes;
    int threads;
    size_t launch;  ///< That these were taken in, from 0.
    size_t count;
    double *values;  ///< GFLOP/s or GB/s.
};

/// What is to be measured, and what is known so far.
struct schedule {
    const struct machine *machine;
    const struct options *options;
    size_t problems;
    const struct problem *problem;  ///< [problems]
    size_t rows;
    struct row *row;          ///< [rows]
    size_t *row_problem;      ///< [rows]: index of the row's problem.
    double default_budget_s;  ///< Used when the options have none; 0: no limit.
    size_t default_launches;
    size_t default_samples;  ///< A row's samples in the first launch.
    double default_min_time_s;
    const char *journal;  ///< Path of the journal, or NULL for none.
    bool quiet;           ///< No progress on stderr.
    // filled by schedule_run()
    size_t ceilings;
    struct ceiling_samples *ceiling;
    bool interrupted;  ///< Stopped by a signal: the journal is kept.
    // private to schedule.c
    FILE *journal_file;
    size_t launch;           ///< Launch that is under way, from 0.
    bool *problem_done;      ///< [problems], in this launch.
    char (*hash)[20];        ///< [rows]: of the verified output, "" before that.
    size_t *samples_wanted;  ///< [rows], in this launch.
    bool *above;             ///< [rows]: a share that lies above its ceiling in every launch.
    bool only_above;         ///< Measure no others.
    long current;            ///< Row that the worker is busy with, or -1.
    char current_what[64];
    char current_fault[200];  ///< What the worker said of a fault, or "".
    size_t events;            ///< Received in this launch; tells a worker that never began.
};

/// Gets the length of a sample that is aimed at.
static inline double schedule_min_time_s(const struct schedule *schedule) {
    return schedule->options->min_time_s > 0 ? schedule->options->min_time_s
                                             : schedule->default_min_time_s;
}

/// Makes the private state; schedule_run() does it itself.
void schedule_prepare(struct schedule *schedule);

/// Takes what the journal holds into the rows, as schedule_run() does with options->resume. Lines
/// that are no events of ours are passed over, and so are samples of a problem that is not
/// complete. Tells in `torn` whether the last line lacks its end. Prints one line and returns
/// EXIT_USAGE when the journal cannot be read or is of another selection.
int schedule_read_journal(struct schedule *schedule, bool *torn);

/// Measures. With options->resume the journal is read first, and what it holds is not measured
/// again. Returns EXIT_DONE, or EXIT_USAGE (said already) for a journal that does not fit, a
/// plug-in that cannot be loaded, ... Verdicts are in the rows.
int schedule_run(struct schedule *schedule);

/// Sets every row's ceiling_kind and ceiling_share from the ceilings beside its problem, and finds
/// the rows whose share lies wholly above 1.05: in every launch even the best sample of the ceiling
/// does not reconcile with the row's median. With `judge` their verdict becomes ACCOUNTING. Needs
/// the medians. Returns the number of these rows.
size_t schedule_shares(struct schedule *schedule, bool judge);

/// Measures the rows that schedule_shares() has found, and the ceilings beside them, in a further
/// launch without a budget. Returns as schedule_run().
int schedule_again(struct schedule *schedule);

/// Gets the ceilings, pooled over the problems of the same level. Free with ceilings_free().
void schedule_ceilings(const struct schedule *schedule, struct ceiling_list *list);

void schedule_free(struct schedule *schedule);

#endif
