/// Quantities with their uncertainty, as the launches of a run tell it, and what follows from them:
/// sums, ratios, a power law. The launch is the unit: samples within one are no independent
/// witnesses.
#ifndef MHA_ESTIMATE_H
#define MHA_ESTIMATE_H

#include <stddef.h>

#include "results.h"

/// A positive quantity. All NAN when it is not known; variance NAN when its spread is not.
struct estimate {
    double value;
    double variance;  ///< Of the value, not of one launch.
    double df;        ///< Degrees of freedom of the variance; may be INFINITY.
};

struct estimate estimate_unknown(void);

/// Gets a row's time of one call, in ns: the median of its launches, and what their spread says of
/// it. Unknown for a row without a time.
struct estimate estimate_of_row(const struct row *row);

/// Gets the standard deviation of one launch's median, relative to the median of them all: a
/// shape's own unrest. NAN below two launches.
double estimate_launch_spread(const struct row *row);

/// Gets an estimate from a median of `count` independent samples with this MAD / median.
struct estimate estimate_of_median(double median, double spread, size_t count);

/// Sum and ratio of independent quantities: first-order propagation, degrees of freedom after
/// Welch and Satterthwaite.
struct estimate estimate_sum(struct estimate a, struct estimate b);
struct estimate estimate_ratio(struct estimate a, struct estimate b);

/// Gets part / (part + rest), or part / rest, of two times that were taken in the same `launches`
/// launches' last one, each with an independent relative error of one launch's spread.
struct estimate estimate_share(double part, double rest, double spread, size_t launches);
struct estimate estimate_step_ratio(double part, double rest, double spread, size_t launches);

/// Gets the exponent p of y = c x^p by least squares in the logarithms. Its uncertainty is that of
/// the points' distances from the line, which hold their noise and the law's misfit alike. NAN
/// below three points.
struct estimate estimate_exponent(const double *x, const struct estimate *y, size_t count);

struct estimate_interval {
    double low, high;
};

/// Gets the interval that misses the true value with a probability of `error`: Student's, in the
/// logarithm, since times are positive and their errors are factors. NAN when the spread is not
/// known.
struct estimate_interval estimate_interval(const struct estimate *e, double error);

/// The same for a share, which lies between 0 and 1: in the logarithm of its odds.
struct estimate_interval estimate_interval_share(const struct estimate *e, double error);

/// The same, for a quantity that may be negative: in the value itself.
struct estimate_interval estimate_interval_linear(const struct estimate *e, double error);

#endif
