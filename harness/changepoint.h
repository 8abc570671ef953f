/// Steps in a series of times, one time per commit: where the level changed, and since which commit
/// that could be known.
///
/// The method is the change point model of statistical process control (Hawkins, Qiu and Kang, The
/// changepoint model for statistical process control, J. Quality Technology 35, 2003; Ross,
/// Parametric and nonparametric sequential change detection in R, J. Statistical Software 66(3),
/// 2015): commits are taken one by one, after each one the commits since the last step are split in
/// two at every place, and a statistic of the two sides is held against a threshold that gives
/// every commit the same small probability of a false step. What is found at a commit depends on
/// nothing that comes after it: a step that was reported once stays reported. Two statistics share
/// the budget of false steps:
/// - the Mann-Whitney statistic (Hawkins and Deng, A nonparametric change-point control chart,
///   J. Quality Technology 42, 2010), whose false steps do not depend on the distribution of the
///   noise, for small steps, over up to CHANGEPOINT_WINDOW commits;
/// - the mean of the last three commits, winsorised so that one of them cannot decide, against the
///   median and the winsorised standard deviation of those before, for large steps at once: ranks
///   of three commits cannot tell a large step from a small one. All three must also lie beyond all
///   but a few of the values before, which holds the rate under noise of any tail or shape.
///
/// Commits are taken to be independent of each other; noise that drifts gives more false steps.
#ifndef MHA_CHANGEPOINT_H
#define MHA_CHANGEPOINT_H

#include <stddef.h>

enum {
    CHANGEPOINT_WINDOW = 100,  ///< Commits back that a test looks at most.
    CHANGEPOINT_QUIET = 20,    ///< Commits that must have shown the noise before three suffice.
    CHANGEPOINT_LEAST = 3,     ///< Commits that a new level must have shown.
};

struct changepoint {
    size_t first;          ///< Index of the first value of the new level.
    size_t found;          ///< Index of the value that gave it away.
    double before, after;  ///< Medians of the level that ended and of the one that began.
};

/// Finds the steps in values that are finite and positive, in their order. Returns their number;
/// `steps`, to be freed, is NULL without one.
size_t changepoints_find(const double *values, size_t count, struct changepoint **steps);

/// One line: what changepoints_find() does and whose method it is.
const char *changepoint_method(void);

#endif
