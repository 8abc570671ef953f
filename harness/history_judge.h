/// What a series of the history says: the commits in their order, the steps between them, and where
/// verdicts changed.
#ifndef MHA_HISTORY_JUDGE_H
#define MHA_HISTORY_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"

/// One commit that has a time. Several results of one commit count as one, by their median and at
/// the place of the first; a commit that is not known, or whose files differed ("-dirty"), stands
/// for itself each time.
struct history_commit {
    const struct history_point *first;  ///< Its first result with a time.
    size_t results;
    double median_ns;
};

/// A change of level.
struct history_step {
    struct history_commit before, after;  ///< Last commit of the old level, first one of the new.
    struct history_commit found;          ///< The commit that gave it away.
    double before_ns, after_ns;           ///< Medians of the two levels.
    bool acknowledged;
};

/// A result whose verdict differs from that of the one before it.
struct history_change {
    const struct history_point *before, *after;
    bool acknowledged;
};

/// The points that are named here stay those of the series.
struct history_judgement {
    const struct history_series *series;
    size_t commits;    ///< With a time.
    double median_ns;  ///< Of the newest level; NAN without a time.
    size_t step_count;
    struct history_step *steps;
    size_t change_count;
    struct history_change *changes;
};

/// Judges one series. Returns EXIT_USAGE after a message when the file cannot be read.
int history_judge(struct history *history, const struct history_series *series,
                  struct history_judgement *judgement);

void history_judgement_free(struct history_judgement *judgement);

/// Gets the newest step when it is a slow-down that nobody has acknowledged; else NULL.
const struct history_step *history_regression(const struct history_judgement *judgement);

/// Gets the newest change of verdict when it is one to a failure that nobody has acknowledged; else
/// NULL.
const struct history_change *history_failure(const struct history_judgement *judgement);

#endif
