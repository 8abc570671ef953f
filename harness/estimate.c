#include "estimate.h"

#include <math.h>
#include <stdlib.h>

#include "diag.h"
#include "stats.h"
#include "student.h"

/// Asymptotic standard error of a sample's median over that of its mean, for normal values:
/// sqrt(pi/2) (Cramer, Mathematical Methods of Statistics, 1946, section 28.5). Small samples have
/// less, down to 1 for two values.
#define MEDIAN_ERROR 1.2533141373155003

struct estimate estimate_unknown(void) {
    return (struct estimate){UNKNOWN, UNKNOWN, UNKNOWN};
}

double estimate_launch_spread(const struct row *row) {
    const size_t n = row->launches;
    if (!row_has_time(row) || n < 2) {
        return UNKNOWN;
    }
    double *logs = diag_alloc(calloc(n, sizeof(*logs)));
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        logs[i] = log(stats_median(row->samples[i].ns, row->samples[i].count));
        mean += logs[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        squares += (logs[i] - mean) * (logs[i] - mean);
    }
    free(logs);
    return sqrt(squares / (double)(n - 1));
}

struct estimate estimate_of_row(const struct row *row) {
    if (!row_has_time(row)) {
        return estimate_unknown();
    }
    const double n = (double)row->launches;
    const double error =
        row->median_ns * MEDIAN_ERROR * estimate_launch_spread(row) / sqrt(fmax(n, 1));
    return (struct estimate){row->median_ns, error * error, n - 1};
}

struct estimate estimate_of_median(double median, double spread, size_t count) {
    const double error =
        count > 1 ? median * MEDIAN_ERROR * STATS_SIGMA_PER_MAD * spread / sqrt((double)count)
                  : UNKNOWN;
    return (struct estimate){median, error * error, (double)count - 1};
}

/// Degrees of freedom of a sum of two variances.
static double welch(double a, double a_df, double b, double b_df) {
    const double denominator = a * a / a_df + b * b / b_df;
    return denominator > 0 ? (a + b) * (a + b) / denominator : (double)INFINITY;
}

struct estimate estimate_sum(struct estimate a, struct estimate b) {
    return (struct estimate){a.value + b.value, a.variance + b.variance,
                             welch(a.variance, a.df, b.variance, b.df)};
}

struct estimate estimate_ratio(struct estimate a, struct estimate b) {
    const double ratio = a.value / b.value;
    const double a_relative = a.variance / (a.value * a.value);
    const double b_relative = b.variance / (b.value * b.value);
    return (struct estimate){ratio, ratio * ratio * (a_relative + b_relative),
                             welch(a_relative, a.df, b_relative, b.df)};
}

struct estimate estimate_step_ratio(double part, double rest, double spread, size_t launches) {
    const double ratio = part / rest, error = ratio * sqrt(2) * spread;
    return (struct estimate){ratio, error * error, (double)launches - 1};
}

struct estimate estimate_share(double part, double rest, double spread, size_t launches) {
    // d(p/(p+q)) = share * (1 - share) * (dp/p - dq/q).
    const double share = part / (part + rest), error = share * (1 - share) * sqrt(2) * spread;
    return (struct estimate){share, error * error, (double)launches - 1};
}

struct estimate estimate_exponent(const double *x, const struct estimate *y, size_t count) {
    double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0;
    if (count < 3) {
        return estimate_unknown();
    }
    for (size_t i = 0; i < count; i++) {
        mean_x += log(x[i]) / (double)count;
        mean_y += log(y[i].value) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        const double dx = log(x[i]) - mean_x;
        xx += dx * dx;
        xy += dx * (log(y[i].value) - mean_y);
    }
    const double slope = xy / xx;
    for (size_t i = 0; i < count; i++) {
        const double off = log(y[i].value) - mean_y - slope * (log(x[i]) - mean_x);
        rest += off * off;
    }
    const double df = (double)count - 2;
    return (struct estimate){slope, rest / df / xx, df};
}

/// Half the width of Student's interval; NAN without a spread.
static double half_width(double sigma, double df, double error) {
    return isfinite(sigma) && df > 0 ? student_quantile(error / 2, df) * sigma : UNKNOWN;
}

struct estimate_interval estimate_interval(const struct estimate *e, double error) {
    const double half = half_width(sqrt(e->variance) / e->value, e->df, error);
    return (struct estimate_interval){e->value * exp(-half), e->value * exp(half)};
}

struct estimate_interval estimate_interval_share(const struct estimate *e, double error) {
    // d(log(s / (1 - s))) = ds / (s (1 - s)).
    const double odds = e->value / (1 - e->value);
    const double half = half_width(sqrt(e->variance) / (e->value * (1 - e->value)), e->df, error);
    const double low = odds * exp(-half), high = odds * exp(half);
    return (struct estimate_interval){low / (1 + low), high / (1 + high)};
}

struct estimate_interval estimate_interval_linear(const struct estimate *e, double error) {
    const double half = half_width(sqrt(e->variance), e->df, error);
    return (struct estimate_interval){e->value - half, e->value + half};
}
