/// Robust statistics over few samples. No function changes its input, assumes an order, or lets a
/// NaN pass unnoticed: a NaN among the values makes the result NaN, and so does an empty list.
#ifndef MHA_STATS_H
#define MHA_STATS_H

#include <math.h>
#include <stddef.h>

/// A number that is not known. The C library's NAN is a float, whose promotion the compilers flag.
#define UNKNOWN ((double)NAN)

/// Gets the smallest value.
double stats_min(const double *values, size_t count);

/// Gets the median: the middle value, or the mean of the middle two.
double stats_median(const double *values, size_t count);

/// Gets the quantile `p` in [0, 1], linear between the order statistics (type 7 of Hyndman and Fan,
/// Sample quantiles in statistical packages, 1996): p 0 is the minimum, 0.5 the median, 1 the
/// maximum.
double stats_quantile(const double *values, size_t count, double p);

/// Gets the median absolute deviation from the median, as it is: not scaled to a normal
/// distribution's standard deviation. 0 for one value.
double stats_mad(const double *values, size_t count);

/// Standard deviation of a normal distribution over its MAD: 1 / Phi^-1(3/4).
#define STATS_SIGMA_PER_MAD 1.4826

/// Gets MAD / median, the spread that rows report. NAN for fewer than two values, which tell
/// nothing of a spread, and for a median that is not positive.
double stats_spread(const double *values, size_t count);

/// An interval that holds the true median.
struct stats_interval {
    double low;
    double high;
    double coverage;  ///< How sure that is, for independent values of any continuous distribution.
};

/// Gets the narrowest symmetric pair of order statistics that holds the median with a probability
/// of at least 0.95, free of any assumption on the distribution: the number of values below the
/// median is binomial(count, 1/2) (David and Nagaraja, Order Statistics, 3rd ed., section 7.1).
///
/// Below six values no such pair exists: the interval is then [minimum, maximum], and `coverage`
/// = 1 - 2^(1-count) tells how little that is. An empty list yields NAN, NAN and 0.
struct stats_interval stats_median_interval(const double *values, size_t count);

#endif
