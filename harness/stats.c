#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "diag.h"

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/// Makes a sorted copy, to be freed; NULL when there is nothing to sort or a NaN, which has no
/// place in an order, is among the values.
static double *sorted_copy(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i])) {
            return NULL;
        }
    }
    if (count == 0) {
        return NULL;
    }
    double *copy = diag_alloc(calloc(count, sizeof(*copy)));
    memcpy(copy, values, count * sizeof(*copy));
    qsort(copy, count, sizeof(*copy), compare_doubles);
    return copy;
}

/// Gets the quantile of values in ascending order.
static double sorted_quantile(const double *sorted, size_t count, double p) {
    const double place = p * (double)(count - 1);
    const size_t below = (size_t)place;
    if (below + 1 >= count) {
        return sorted[count - 1];
    }
    const double share = place - (double)below;
    // Without this case an infinity above a value that is asked for exactly would turn it into NaN.
    if (share <= 0.0) {
        return sorted[below];
    }
    return sorted[below] + share * (sorted[below + 1] - sorted[below]);
}

double stats_quantile(const double *values, size_t count, double p) {
    if (!(p >= 0.0 && p <= 1.0)) {
        return UNKNOWN;
    }
    double *sorted = sorted_copy(values, count);
    if (sorted == NULL) {
        return UNKNOWN;
    }
    const double quantile = sorted_quantile(sorted, count, p);
    free(sorted);
    return quantile;
}

double stats_min(const double *values, size_t count) {
    return stats_quantile(values, count, 0.0);
}

double stats_median(const double *values, size_t count) {
    return stats_quantile(values, count, 0.5);
}

double stats_mad(const double *values, size_t count) {
    const double median = stats_median(values, count);
    if (isnan(median)) {
        return UNKNOWN;
    }
    double *deviations = diag_alloc(calloc(count, sizeof(*deviations)));
    for (size_t i = 0; i < count; i++) {
        deviations[i] = fabs(values[i] - median);
    }
    const double mad = stats_median(deviations, count);
    free(deviations);
    return mad;
}

double stats_spread(const double *values, size_t count) {
    const double median = stats_median(values, count);
    if (count < 2 || !(median > 0.0)) {
        return UNKNOWN;
    }
    return stats_mad(values, count) / median;
}

/// Gets the probability of exactly k heads in n tosses of a fair coin. By logarithms, since 2^-n
/// leaves a double's range at n = 1075.
static double coin_probability(size_t n, size_t k) {
    int sign = 0;
    const double choose = lgamma_r((double)n + 1.0, &sign) - lgamma_r((double)k + 1.0, &sign) -
                          lgamma_r((double)(n - k) + 1.0, &sign);
    return exp(choose - (double)n * M_LN2);
}

struct stats_interval stats_median_interval(const double *values, size_t count) {
    struct stats_interval interval = {UNKNOWN, UNKNOWN, 0.0};
    double *sorted = sorted_copy(values, count);
    if (sorted == NULL) {
        return interval;
    }
    // The pair (rank-th smallest, rank-th largest) misses the median when fewer than `rank` values
    // lie on one side of it: 2 P(heads < rank). Start with the outermost pair and go inwards while
    // the next one still misses rarely enough.
    const double miss_allowed = 0.05;
    size_t rank = 1;
    double miss = 2.0 * coin_probability(count, 0);
    while (2 * (rank + 1) <= count + 1) {
        const double next = miss + 2.0 * coin_probability(count, rank);
        if (!(next <= miss_allowed)) {
            break;
        }
        miss = next;
        rank++;
    }
    interval.low = sorted[rank - 1];
    interval.high = sorted[count - rank];
    interval.coverage = fmax(0.0, 1.0 - miss);
    free(sorted);
    return interval;
}
