/// Robust statistics: known values, tiny samples, and the interval's coverage held against exact
/// binomial coefficients.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

enum { COUNT_MAX = 60 };

static void assert_close(double got, double want) {
    if (!(fabs(got - want) <= 1e-12 * fmax(1.0, fabs(want)))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static void assert_same(double got, double want) {
    if (!(got >= want && got <= want)) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static void nothing_is_nan(void **state) {
    (void)state;
    assert_true(isnan(stats_min(NULL, 0)));
    assert_true(isnan(stats_median(NULL, 0)));
    assert_true(isnan(stats_quantile(NULL, 0, 0.5)));
    assert_true(isnan(stats_mad(NULL, 0)));
    assert_true(isnan(stats_spread(NULL, 0)));
    const struct stats_interval interval = stats_median_interval(NULL, 0);
    assert_true(isnan(interval.low));
    assert_true(isnan(interval.high));
    assert_same(interval.coverage, 0.0);
}

static void one_value(void **state) {
    (void)state;
    const double value[] = {42.5};
    assert_same(stats_min(value, 1), 42.5);
    assert_same(stats_median(value, 1), 42.5);
    assert_same(stats_quantile(value, 1, 1.0), 42.5);
    assert_same(stats_mad(value, 1), 0.0);
    // One value tells nothing of a spread: 0 would claim that there is none.
    assert_true(isnan(stats_spread(value, 1)));
    const struct stats_interval interval = stats_median_interval(value, 1);
    assert_same(interval.low, 42.5);
    assert_same(interval.high, 42.5);
    assert_same(interval.coverage, 0.0);
}

static void medians(void **state) {
    (void)state;
    const double odd[] = {9.0, 1.0, 5.0};
    const double even[] = {9.0, 1.0, 5.0, 2.0};
    double kept[4];
    memcpy(kept, even, sizeof(even));
    assert_same(stats_median(odd, 3), 5.0);
    assert_same(stats_median(even, 4), 3.5);
    assert_same(stats_min(even, 4), 1.0);
    assert_memory_equal(kept, even, sizeof(even));
    // An outlier however large moves neither median nor MAD by more than a rank.
    const double outlier[] = {1.0, 2.0, 3.0, 1e300, 2.0};
    assert_same(stats_median(outlier, 5), 2.0);
    assert_same(stats_mad(outlier, 5), 1.0);
}

static void quantiles(void **state) {
    (void)state;
    // By hand: place = p (n-1) from 0, linear in between.
    const double values[] = {10.0, 4.0, 2.0, 3.0, 1.0};
    assert_same(stats_quantile(values, 5, 0.0), 1.0);
    assert_same(stats_quantile(values, 5, 0.25), 2.0);
    assert_close(stats_quantile(values, 5, 0.9), 4.0 + 0.6 * 6.0);
    assert_same(stats_quantile(values, 5, 1.0), 10.0);
    assert_true(isnan(stats_quantile(values, 5, 1.5)));
    assert_true(isnan(stats_quantile(values, 5, -0.1)));
    const double infinite[] = {1.0, 2.0, (double)INFINITY};
    assert_same(stats_median(infinite, 3), 2.0);
}

static void deviations(void **state) {
    (void)state;
    // Deviations from the median 2: 1 1 0 0 2 4 7, whose median is 1.
    const double values[] = {1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0};
    assert_same(stats_mad(values, 7), 1.0);
    assert_same(stats_spread(values, 7), 0.5);
    const double zero[] = {0.0, 0.0, 0.0};
    assert_true(isnan(stats_spread(zero, 3)));
}

static void nan_is_not_lost(void **state) {
    (void)state;
    for (size_t place = 0; place < 3; place++) {
        double values[] = {1.0, 2.0, 3.0};
        values[place] = UNKNOWN;
        assert_true(isnan(stats_min(values, 3)));
        assert_true(isnan(stats_median(values, 3)));
        assert_true(isnan(stats_mad(values, 3)));
        assert_true(isnan(stats_spread(values, 3)));
        assert_true(isnan(stats_median_interval(values, 3).low));
    }
}

/// Counts, of the 2^n outcomes of n tosses, those with fewer than `rank` heads; exact up to 60.
static uint64_t outcomes_below(size_t n, size_t rank) {
    uint64_t choose[COUNT_MAX + 1] = {1};
    for (size_t row = 1; row <= n; row++) {
        for (size_t k = row; k > 0; k--) {
            choose[k] += choose[k - 1];
        }
    }
    uint64_t sum = 0;
    for (size_t k = 0; k < rank; k++) {
        sum += choose[k];
    }
    return sum;
}

static double exact_coverage(size_t n, size_t rank) {
    return 1.0 - 2.0 * (double)outcomes_below(n, rank) / ldexp(1.0, (int)n);
}

/// Fills values with 1 ... n in an order that is not sorted: 7 is prime to every n that is tried
/// but its multiples, where 11 is.
static void fill_ranks(double *values, size_t n) {
    const size_t stride = n % 7 != 0 ? 7 : 11;
    for (size_t i = 0; i < n; i++) {
        values[i] = (double)(i * stride % n + 1);
    }
}

static void interval_is_exact(void **state) {
    (void)state;
    for (size_t n = 1; n <= COUNT_MAX; n++) {
        double values[COUNT_MAX];
        fill_ranks(values, n);
        const struct stats_interval interval = stats_median_interval(values, n);
        const size_t rank = (size_t)interval.low;
        assert_same(interval.high, (double)(n + 1 - rank));
        assert_close(interval.coverage, exact_coverage(n, rank));
        if (n < 6) {
            assert_int_equal(rank, 1);
            assert_true(interval.coverage < 0.95);
        } else {
            // Enough, and not more than needed.
            assert_true(interval.coverage >= 0.95);
            assert_true(exact_coverage(n, rank + 1) < 0.95);
        }
    }
}

static void interval_of_known_sizes(void **state) {
    (void)state;
    // Ranks as printed tables of the sign test's interval have them.
    const struct {
        size_t n, low, high;
    } known[] = {{6, 1, 6}, {10, 2, 9}, {20, 6, 15}, {30, 10, 21}, {50, 18, 33}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double values[COUNT_MAX];
        fill_ranks(values, known[i].n);
        const struct stats_interval interval = stats_median_interval(values, known[i].n);
        assert_same(interval.low, (double)known[i].low);
        assert_same(interval.high, (double)known[i].high);
    }
}

static void interval_of_many(void **state) {
    (void)state;
    // 2^-5000 is no double.
    const size_t n = 5000;
    double *values = calloc(n, sizeof(*values));
    assert_non_null(values);
    fill_ranks(values, n);
    const struct stats_interval interval = stats_median_interval(values, n);
    assert_true(interval.coverage >= 0.95 && interval.coverage < 0.956);
    // The normal approximation: 1.96 sqrt(n) / 2 ranks to each side.
    const double half = 0.5 * (interval.high - interval.low);
    assert_true(fabs(half - 0.98 * sqrt((double)n)) < 2.0);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_nan),    cmocka_unit_test(one_value),
        cmocka_unit_test(medians),           cmocka_unit_test(quantiles),
        cmocka_unit_test(deviations),        cmocka_unit_test(nan_is_not_lost),
        cmocka_unit_test(interval_is_exact), cmocka_unit_test(interval_of_known_sizes),
        cmocka_unit_test(interval_of_many),
    };
    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
