/// The statistics of `ab`: exact values, the guarantees of the stopping rule, and what it can see.
///
/// Rates are held by simulation: tables of 60 rows under noise that is worse than real (heavy
/// tails, outliers in one launch of twenty, noise that rows share), with a fixed seed, so that a
/// run says the same every time.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "ab_stats.h"
#include "data.h"

enum { ROWS = 60 };

static const double rate = 0.01, floor_share = 0.01;

// --- random numbers
// ------------------------------------------------------------------------------------

static uint64_t counter;

/// Uniform in (0, 1).
static double uniform(void) {
    return ((double)(data_mix(20260101, counter++) >> 11) + 0.5) * 0x1p-53;
}

static double normal(void) {
    return sqrt(-2 * log(uniform())) * cos(2 * acos(-1.0) * uniform());
}

/// Student's t with two degrees of freedom, by its quantile function: it has no variance.
static double heavy(void) {
    const double u = uniform();
    return (2 * u - 1) / sqrt(2 * u * (1 - u));
}

/// Noise of one launch of one row, symmetric as the random order within pairs makes it.
static double noise(double spread, double shared) {
    double x = spread * heavy() + shared;
    if (uniform() < 0.05) {
        x += (uniform() < 0.5 ? -1 : 1) * 0.5 * uniform();  // half as much time again, or half less
    }
    return x;
}

// --- exact values
// --------------------------------------------------------------------------------------

/// The integral itself, by Simpson's rule.
static double evidence_by_hand(size_t above, size_t count) {
    enum { STEPS = 20000 };
    double sum = 0;
    for (size_t i = 0; i <= STEPS; i++) {
        const double p = 0.5 + 0.5 * (double)i / STEPS;
        const double value =
            2 * pow(2 * p, (double)above) * pow(2 - 2 * p, (double)(count - above));
        sum += value * (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2);
    }
    return log(sum * 0.5 / STEPS / 3);
}

static void evidence_is_the_integral(void **state) {
    (void)state;
    for (size_t n = 0; n <= 60; n += n < 6 ? 1 : 9) {
        for (size_t s = 0; s <= n; s++) {
            const double want = evidence_by_hand(s, n), got = ab_log_evidence(s, n);
            if (fabs(got - want) > 1e-6) {
                fail_msg("%zu of %zu: %.9g, the integral is %.9g", s, n, got, want);
            }
        }
    }
}

/// The expectation under a fair coin is exactly 1 at every number of launches: a martingale.
static void evidence_is_fair(void **state) {
    (void)state;
    for (size_t n = 1; n <= 200; n++) {
        double sum = 0;
        for (size_t s = 0; s <= n; s++) {
            const double log_probability = lgamma((double)n + 1) - lgamma((double)s + 1) -
                                           lgamma((double)(n - s) + 1) - (double)n * log(2);
            sum += exp(log_probability + ab_log_evidence(s, n));
        }
        if (fabs(sum - 1) > 1e-9) {
            fail_msg("%zu launches: expectation %.12g", n, sum);
        }
    }
}

static void least_above_is_the_first(void **state) {
    (void)state;
    for (size_t n = 1; n <= 300; n += 7) {
        for (double wanted = 0.5; wanted < 20; wanted += 3.1) {
            const size_t k = ab_least_above(n, wanted);
            assert_true(k == 0 || ab_log_evidence(k - 1, n) < wanted);
            assert_true(k > n || ab_log_evidence(k, n) >= wanted);
        }
    }
    // 2^17 / 17 = 7710 reaches 60 / 0.01 = 6000, and 2^16 / 16 = 4096 does not.
    assert_int_equal(ab_least_launches(log(6000)), 16);
    assert_true(isfinite(ab_log_evidence(1000, 1000)));
}

// --- verdicts
// ------------------------------------------------------------------------------------------

/// Adds launches of a fixed shift to one row, until it is settled or `most` are reached.
static size_t feed(struct ab_table *table, size_t row, double x, size_t most) {
    size_t n = 0;
    while (n < most && table->series[row].verdict == COMPARISON_INCONCLUSIVE) {
        ab_table_add(table, row, x);
        ab_table_look(table);
        n++;
    }
    return n;
}

static void clear_rows_are_settled(void **state) {
    (void)state;
    struct ab_table table;
    ab_table_make(&table, 4, log1p(floor_share), rate);
    assert_int_equal(feed(&table, 0, 0.03, 100), 12);  // 2^13 / 13 = 630 >= 4 / 0.01
    assert_int_equal(table.series[0].verdict, COMPARISON_SLOWER);
    feed(&table, 1, -0.03, 100);
    assert_int_equal(table.series[1].verdict, COMPARISON_FASTER);
    feed(&table, 2, 0.001, 100);
    assert_int_equal(table.series[2].verdict, COMPARISON_SAME);
    // On the floor itself nothing is slower.
    feed(&table, 3, log1p(floor_share), 100);
    assert_int_not_equal(table.series[3].verdict, COMPARISON_SLOWER);
    ab_table_free(&table);
}

static void few_launches_settle_nothing(void **state) {
    (void)state;
    struct ab_table table;
    ab_table_make(&table, ROWS, log1p(floor_share), rate);
    assert_int_equal(feed(&table, 0, 0.5, 15), 15);
    assert_int_equal(table.series[0].verdict, COMPARISON_INCONCLUSIVE);
    const struct ab_estimate e = ab_table_estimate(&table, 0);
    assert_true(fabs(e.change - expm1(0.5)) < 1e-12);
    assert_true(isnan(e.smallest_effect));  // 15 launches cannot show anything at all
    ab_table_free(&table);
}

/// A discovery among many settles with less evidence than one alone: k of m share the error.
static void many_discoveries_need_less(void **state) {
    (void)state;
    struct ab_table table;
    ab_table_make(&table, ROWS, log1p(floor_share), rate);
    size_t launches = 0;
    while (table.series[0].verdict == COMPARISON_INCONCLUSIVE) {
        for (size_t i = 0; i < ROWS; i++) {
            ab_table_add(&table, i, 0.02);
        }
        ab_table_look(&table);
        launches++;
    }
    assert_int_equal(launches, 9);  // 2^10 / 10 = 102 >= 60 / (60 * 0.01)
    for (size_t i = 0; i < ROWS; i++) {
        assert_int_equal(table.series[i].verdict, COMPARISON_SLOWER);
    }
    ab_table_free(&table);
}

/// What would have been seen: shifted by its smallest effect, a row is SLOWER; by less, it is not.
static void smallest_effect_is_the_smallest(void **state) {
    (void)state;
    for (int direction = 0; direction < 2; direction++) {
        struct ab_table table, shifted;
        ab_table_make(&table, 10, log1p(floor_share), rate);
        ab_table_make(&shifted, 10, log1p(floor_share), rate);
        double x[25];
        for (size_t i = 0; i < 25; i++) {
            x[i] = 0.004 * normal();
            ab_table_add(&table, 0, x[i]);
        }
        const struct ab_estimate e = ab_table_estimate(&table, 0);
        const double shift =
            log1p(e.smallest_effect) - log1p(e.change) + (direction ? 1e-9 : -1e-9);
        for (size_t i = 0; i < 25; i++) {
            ab_table_add(&shifted, 0, x[i] + shift);
        }
        ab_table_look(&shifted);
        assert_int_equal(shifted.series[0].verdict == COMPARISON_SLOWER, direction);
        assert_true(e.low <= e.change && e.change <= e.high);
        ab_table_free(&table);
        ab_table_free(&shifted);
    }
}

// --- rates
// ---------------------------------------------------------------------------------------------

/// Upper 95 % limit of a binomial proportion (Clopper and Pearson 1934), by bisection.
static double upper_limit(size_t hits, size_t trials) {
    double low = 0, high = 1;
    for (int step = 0; step < 60; step++) {
        const double p = (low + high) / 2;
        double tail = 0;
        for (size_t k = 0; k <= hits; k++) {
            tail += exp(lgamma((double)trials + 1) - lgamma((double)k + 1) -
                        lgamma((double)(trials - k) + 1) + (double)k * log(p) +
                        (double)(trials - k) * log1p(-p));
        }
        if (tail > 0.05) {
            low = p;
        } else {
            high = p;
        }
    }
    return high;
}

struct outcome {
    size_t false_slower;  ///< Rows called SLOWER that are not.
    bool any_false;
    bool found;          ///< Row 0 is SLOWER.
    size_t found_after;  ///< Launches.
    size_t visits;       ///< Launches of rows, all together.
};

/// One table: row 0 has the effect `changed`, all others `others`.
static struct outcome simulate(double changed, double others, double spread, size_t most) {
    struct ab_table table;
    struct outcome out = {0};
    ab_table_make(&table, ROWS, log1p(floor_share), rate);
    for (size_t launch = 1; launch <= most; launch++) {
        size_t open = 0;
        const double shared = uniform() < 0.3 ? 0.5 * spread * normal() : 0;
        for (size_t i = 0; i < ROWS; i++) {
            if (table.series[i].verdict == COMPARISON_INCONCLUSIVE) {
                ab_table_add(&table, i, (i == 0 ? changed : others) + noise(spread, shared));
                open++;
            }
        }
        out.visits += open;
        ab_table_look(&table);
        if (!out.found && table.series[0].verdict == COMPARISON_SLOWER) {
            out.found = true;
            out.found_after = launch;
        }
        if (open == 0) {
            break;
        }
    }
    for (size_t i = 0; i < ROWS; i++) {
        const bool slower = table.series[i].verdict == COMPARISON_SLOWER;
        out.false_slower += slower && (i == 0 ? changed : others) <= log1p(floor_share);
    }
    out.any_false = out.false_slower > 0;
    ab_table_free(&table);
    return out;
}

/// `tables` tables in which nothing is above the floor: no more of them than the rate has a false
/// alarm (there, the false discovery rate is the chance of any).
static void hold(const char *what, double effect, double spread, size_t tables) {
    size_t false_tables = 0, false_rows = 0;
    for (size_t t = 0; t < tables; t++) {
        const struct outcome o = simulate(effect, effect, spread, 64);
        false_tables += o.any_false;
        false_rows += o.false_slower;
    }
    const double limit = upper_limit(false_tables, tables);
    const double row_limit = upper_limit(false_rows, tables * ROWS);
    printf(
        "%s: %zu of %zu tables with a false SLOWER (upper 95 %% limit %.2f %%, claim %.0f %%); "
        "%zu of %zu rows (upper 95 %% limit %.2f in 1000)\n",
        what, false_tables, tables, 100 * limit, 100 * rate, false_rows, tables * ROWS,
        1000 * row_limit);
    assert_true(limit <= rate);
}

static void null_tables_raise_no_alarm(void **state) {
    (void)state;
    hold("no change, launches spread by 0.5 %", 0, 0.005, 1000);
    hold("no change, launches spread by 5 %", 0, 0.05, 1000);
    hold("all rows at the floor, the hardest case", log1p(floor_share), 0.01, 2500);
}

static void power_is_told(void **state) {
    (void)state;
    static const double effects[] = {0.02, 0.03, 0.05};
    enum { TABLES = 200 };
    for (size_t e = 0; e < 3; e++) {
        size_t found = 0, within = 0, mistaken = 0;
        double visits = 0;
        for (size_t t = 0; t < TABLES; t++) {
            const struct outcome o = simulate(log1p(effects[e]), 0, 0.005, 64);
            found += o.found;
            within += o.found && o.found_after <= 40;
            mistaken += o.false_slower;
            visits += (double)o.visits / ROWS;
        }
        printf(
            "one row of %d slower by %.0f %%, launches spread by 0.5 %%: found in %.1f %% of "
            "tables, in 40 launches in %.1f %%; %.1f launches a row until all are settled; "
            "%zu false SLOWER\n",
            ROWS, 100 * effects[e], 100.0 * (double)found / TABLES, 100.0 * (double)within / TABLES,
            visits / TABLES, mistaken);
        // Three floors of shift are far beyond this noise.
        assert_true(effects[e] < 0.05 || within > TABLES * 95 / 100);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evidence_is_the_integral),
        cmocka_unit_test(evidence_is_fair),
        cmocka_unit_test(least_above_is_the_first),
        cmocka_unit_test(clear_rows_are_settled),
        cmocka_unit_test(few_launches_settle_nothing),
        cmocka_unit_test(many_discoveries_need_less),
        cmocka_unit_test(smallest_effect_is_the_smallest),
        cmocka_unit_test(null_tables_raise_no_alarm),
        cmocka_unit_test(power_is_told),
    };
    return cmocka_run_group_tests_name("ab_stats", tests, NULL, NULL);
}
