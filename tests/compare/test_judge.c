/// The judgement of a table: the distribution behind it against closed forms, its error rates and
/// its power by simulation, and what must hold for any data.
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
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "student.h"

// --- Student's t
// ----------------------------------------------------------------------------------------------

static void assert_near(double got, double want, double relative) {
    if (!(fabs(got - want) <= relative * fabs(want))) {
        fail_msg("%.17g is not %.17g within %g of it", got, want, relative);
    }
}

/// One and two degrees of freedom have closed forms, down to the thinnest tails.
static void tails_have_their_closed_forms(void **state) {
    (void)state;
    for (double t = 0.01; t < 1e7; t *= 1.7) {
        const double root = sqrt(2.0 + t * t);
        assert_near(student_tail(t, 1.0), atan(1.0 / t) / M_PI, 1e-12);
        assert_near(student_tail(t, 2.0), 1.0 / (root * (root + t)), 1e-12);
        assert_near(student_tail(-t, 2.0), 1.0 - 1.0 / (root * (root + t)), 1e-12);
    }
    assert_near(student_tail(0.0, 3.7), 0.5, 1e-14);
    assert_true(student_tail((double)INFINITY, 3.0) <= 0.0);
    assert_near(student_tail(-(double)INFINITY, 3.0), 1.0, 0.0);
    assert_true(isnan(student_tail((double)NAN, 3.0)));
}

/// Between whole degrees of freedom and at many the tails lie where they must.
static void tails_join_the_normal_distribution(void **state) {
    (void)state;
    for (double t = 0.5; t < 6.0; t += 0.5) {
        double before = 1.0;
        for (double df = 0.7; df < 3e5; df *= 3.3) {  // the last is above 1e5
            const double tail = student_tail(t, df);
            assert_true(tail < before);
            before = tail;
        }
        assert_near(before, 0.5 * erfc(t / sqrt(2.0)), 1e-12);
        // Abramowitz and Stegun 26.7.8: t of the normal tail, to the first order in 1 / df.
        const double df = 5e4;
        const double corrected = t * (1.0 - 1.0 / (4.0 * df)) / sqrt(1.0 + t * t / (2.0 * df));
        assert_near(student_tail(t, df), 0.5 * erfc(corrected / sqrt(2.0)), 1e-5);
    }
}

static void quantiles_undo_tails(void **state) {
    (void)state;
    for (double df = 1.0; df < 1e7; df *= 4.3) {
        for (double p = 0.49; p > 1e-9; p /= 3.0) {
            assert_near(student_tail(student_quantile(p, df), df), p, 1e-9);
        }
    }
    // Fisher's table: 5 % two-sided at 4 degrees of freedom, 0.1 % one-sided at 10.
    assert_near(student_quantile(0.025, 4.0), 2.7764451051977987, 1e-12);
    assert_near(student_quantile(0.001, 10.0), 4.143700494046589, 1e-9);
    assert_true(isinf(student_quantile(0.0, 4.0)));
}

// --- tables to judge
// ----------------------------------------------------------------------------------------------

enum { ROWS = 60, LAUNCHES_MAX = 24 };

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers on every machine.
static uint64_t random_state;

static double uniform(void) {
    random_state += 0x9e3779b97f4a7c15U;
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// A standard normal number, by Box and Muller (1958).
static double normal(void) {
    const double radius = sqrt(-2.0 * log(1.0 - uniform()));
    return radius * cos(2.0 * M_PI * uniform());
}

struct table {
    size_t rows;
    double base[ROWS][LAUNCHES_MAX], now[ROWS][LAUNCHES_MAX];
    struct compare_side base_sides[ROWS], now_sides[ROWS];
    struct compare_pair pairs[ROWS];
};

/// How the launches of a simulated table scatter.
struct noise {
    size_t launches;
    double spread;   ///< Standard deviation of the logarithm between launches, of a typical row.
    double variety;  ///< Standard deviation of the logarithm of a row's own spread.
    double shared;   ///< Share of the variance that all rows of a launch have in common.
};

/// Fills a table whose rows are all `shift` slower in truth.
static void simulate(struct table *table, const struct noise *noise, double shift) {
    double base_launch[LAUNCHES_MAX], now_launch[LAUNCHES_MAX];
    table->rows = ROWS;
    for (size_t j = 0; j < noise->launches; j++) {
        base_launch[j] = sqrt(noise->shared) * normal();
        now_launch[j] = sqrt(noise->shared) * normal();
    }
    for (size_t i = 0; i < ROWS; i++) {
        const double spread = noise->spread * exp(noise->variety * normal());
        const double own = sqrt(1.0 - noise->shared);
        for (size_t j = 0; j < noise->launches; j++) {
            table->base[i][j] = 10.0 + spread * (base_launch[j] + own * normal());
            table->now[i][j] = 10.0 + shift + spread * (now_launch[j] + own * normal());
        }
        table->base_sides[i] =
            (struct compare_side){.launches = noise->launches, .log_ns = table->base[i]};
        table->now_sides[i] =
            (struct compare_side){.launches = noise->launches, .log_ns = table->now[i]};
        table->pairs[i] =
            (struct compare_pair){.base = &table->base_sides[i], .now = &table->now_sides[i]};
    }
}

static const struct compare_rules rules = {.floor = 0.01, .launch_floor = 0.05, .error_rate = 0.01};

static size_t count_verdict(const struct table *table, enum comparison_verdict verdict) {
    size_t count = 0;
    for (size_t i = 0; i < table->rows; i++) {
        count += table->pairs[i].verdict == verdict;
    }
    return count;
}

static void shift_row(struct table *table, size_t row, double shift) {
    for (size_t j = 0; j < table->now_sides[row].launches; j++) {
        table->now[row][j] += shift;
    }
}

// --- error rates
// ----------------------------------------------------------------------------------------------

/// Rows that are just as much slower as the floor allows are the hardest that must not be called
/// SLOWER. With all of them so, the false discovery rate is the share of tables with any such call.
static void false_alarms_stay_within_the_rate(void **state) {
    (void)state;
    // Below six launches what is promised holds for spreads up to what is assumed; from six on for
    // any.
    static const struct noise noises[] = {
        {1, 0.05, 0.0, 0.0},  {2, 0.05, 0.0, 0.5},  {3, 0.02, 0.5, 0.5}, {3, 0.05, 0.0, 0.0},
        {5, 0.005, 0.5, 0.0}, {5, 0.05, 0.0, 0.9},  {6, 0.02, 0.5, 0.0}, {6, 0.10, 0.5, 0.5},
        {10, 0.02, 0.5, 0.9}, {20, 0.02, 0.5, 0.5},
    };
    enum { TABLES = 300 };
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    random_state = 1;
    print_message("launches  spread  variety  shared  false tables  false rows (of %d)\n",
                  TABLES * ROWS);
    for (size_t n = 0; n < sizeof(noises) / sizeof(noises[0]); n++) {
        size_t tables = 0, rows = 0;
        for (size_t t = 0; t < TABLES; t++) {
            simulate(table, &noises[n], log1p(rules.floor));
            (void)compare_judge(table->pairs, ROWS, &rules);
            const size_t slower = count_verdict(table, COMPARISON_SLOWER);
            tables += slower > 0;
            rows += slower;
        }
        print_message("%8zu  %5.1f%%  %7.1f  %6.1f  %11.2f%%  %10zu\n", noises[n].launches,
                      100.0 * noises[n].spread, noises[n].variety, noises[n].shared,
                      100.0 * (double)tables / TABLES, rows);
        // Four standard deviations of a count that the rate just allows.
        const double allowed = TABLES * rules.error_rate;
        assert_true((double)tables <= allowed + 4.0 * sqrt(allowed));
        // The mark of the gate: 1 false SLOWER in 1000 rows.
        assert_true((double)rows <= 0.001 * TABLES * ROWS);
    }
    free(table);
}

/// Between two runs the machine itself changes: by the same share for all rows, and by some more or
/// less for each. No launch within a run tells of it, and the more there are, the surer a test that
/// trusts them is of what is no change of the code.
static void a_drift_between_the_runs_is_no_regression(void **state) {
    (void)state;
    static const struct noise noise = {20, 0.01, 0.3, 0.3};
    static const double drifts[][2] = {{0.02, 0.0}, {-0.03, 0.0}, {0.0, 0.005}, {0.02, 0.01}};
    enum { TABLES = 200 };
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    random_state = 4;
    for (size_t d = 0; d < sizeof(drifts) / sizeof(drifts[0]); d++) {
        size_t wrong = 0, found = 0;
        for (size_t t = 0; t < TABLES; t++) {
            simulate(table, &noise, drifts[d][0]);
            for (size_t i = 0; i < ROWS; i++) {
                shift_row(table, i, drifts[d][1] * normal());
            }
            shift_row(table, 7, log1p(0.10));
            (void)compare_judge(table->pairs, ROWS, &rules);
            found += table->pairs[7].verdict == COMPARISON_SLOWER;
            wrong +=
                count_verdict(table, COMPARISON_SLOWER) + count_verdict(table, COMPARISON_FASTER);
        }
        wrong -= found;
        print_message(
            "drift %+.1f%%, of a row %.1f%%: %zu false of %d rows, 10%% found in %zu of %d\n",
            100.0 * drifts[d][0], 100.0 * drifts[d][1], wrong, TABLES * ROWS, found, TABLES);
        assert_true((double)wrong <= 0.001 * TABLES * ROWS);
        // A tenth stands out of all of these, but for a drift that hides a part of it.
        assert_true((double)found >= 0.9 * TABLES);
    }
    // Half of the table slower is a drift to two separate runs; so it is said, and so is it seen
    // when the rows are too few to tell.
    simulate(table, &noise, log1p(0.10));
    const struct compare_added added = compare_judge(table->pairs, ROWS, &rules);
    assert_int_equal(added.drift.rows, ROWS);
    assert_true(fabs(added.drift.shift - log1p(0.10)) < 0.01);
    assert_int_equal(count_verdict(table, COMPARISON_SLOWER), 0);
    const struct compare_added few = compare_judge(table->pairs, COMPARE_DRIFT_ROWS - 1, &rules);
    assert_int_equal(few.drift.rows, 0);
    assert_int_equal(table->pairs[0].verdict, COMPARISON_SLOWER);
    free(table);
}

/// The other direction, and no change at all: FASTER must be as rare.
static void faster_errs_as_rarely(void **state) {
    (void)state;
    static const struct noise noise = {8, 0.02, 0.5, 0.3};
    enum { TABLES = 300 };
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    random_state = 2;
    size_t faster = 0, slower = 0;
    for (size_t t = 0; t < TABLES; t++) {
        simulate(table, &noise, -log1p(rules.floor));
        (void)compare_judge(table->pairs, ROWS, &rules);
        faster += count_verdict(table, COMPARISON_FASTER);
        slower += count_verdict(table, COMPARISON_SLOWER);
    }
    print_message("%zu false FASTER of %d rows\n", faster, TABLES * ROWS);
    assert_true((double)faster <= 0.001 * TABLES * ROWS);
    assert_int_equal(slower, 0);
    free(table);
}

static double power_of(const struct noise *noise, double change) {
    enum { TABLES = 100 };
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    size_t found = 0;
    for (size_t t = 0; t < TABLES; t++) {
        simulate(table, noise, 0.0);
        shift_row(table, 7, log1p(change));
        (void)compare_judge(table->pairs, ROWS, &rules);
        found += table->pairs[7].verdict == COMPARISON_SLOWER;
    }
    free(table);
    return (double)found / TABLES;
}

/// One slowed row in a table of sixty: what is found, for the reader; and that it is found where
/// theory says so.
static void slow_downs_are_found(void **state) {
    (void)state;
    static const double changes[] = {0.02, 0.03, 0.05, 0.10, 0.20, 0.50};
    static const size_t launches[] = {3, 5, 6, 10, 20};
    static const double spreads[] = {0.003, 0.01, 0.03};
    random_state = 3;
    print_message("power     +2%%   +3%%   +5%%  +10%%  +20%%  +50%%\n");
    for (size_t l = 0; l < sizeof(launches) / sizeof(launches[0]); l++) {
        for (size_t s = 0; s < sizeof(spreads) / sizeof(spreads[0]); s++) {
            const struct noise noise = {launches[l], spreads[s], 0.3, 0.3};
            print_message("%2zu x %.1f%%", launches[l], 100.0 * spreads[s]);
            for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++) {
                print_message(" %5.2f", power_of(&noise, changes[c]));
            }
            print_message("\n");
        }
    }
    // Six launches, 0.5 % between them: error 0.3 %, and t is 6.6 at the first step of the
    // correction, so that 1 % + 1.9 % is seen by half of the tables and 5 % by nearly all.
    assert_true(power_of(&(struct noise){6, 0.005, 0.0, 0.0}, 0.05) > 0.9);
    // Five launches and the launch floor of 5 %: error 3.2 %, 4 errors beyond the floor are 14 %.
    assert_true(power_of(&(struct noise){5, 0.005, 0.0, 0.0}, 0.20) > 0.9);
    assert_true(power_of(&(struct noise){20, 0.01, 0.0, 0.0}, 0.05) > 0.9);
}

// --- what holds for any data
// ----------------------------------------------------------------------------------------------

/// How bad a verdict is for a row that did not become faster.
static int severity(enum comparison_verdict verdict) {
    static const enum comparison_verdict order[] = {COMPARISON_FASTER, COMPARISON_SAME,
                                                    COMPARISON_INCONCLUSIVE, COMPARISON_SLOWER};
    int place = 0;
    while (order[place] != verdict) {
        place++;
        assert_true(place < 4);
    }
    return place;
}

static void a_bigger_slow_down_is_never_judged_milder(void **state) {
    (void)state;
    static const size_t launches[] = {1, 2, 5, 6, 12};
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    size_t reached[4] = {0};
    random_state = 4;
    for (size_t t = 0; t < 60; t++) {
        const struct noise noise = {launches[t % 5], 0.0005 * pow(2.0, (double)(t % 8)), 0.5, 0.3};
        simulate(table, &noise, 0.0);
        // Other rows that are slower in truth: the correction's later steps take part.
        shift_row(table, 1, 0.3);
        shift_row(table, 2, 1.0);
        int worst = 0;
        double before = -1.0;
        for (int step = 0; step < 80; step++) {
            (void)compare_judge(table->pairs, ROWS, &rules);
            const struct compare_pair *pair = &table->pairs[0];
            const int now = severity(pair->verdict);
            reached[now]++;
            assert_true(pair->change > before);
            before = pair->change;
            // What chance made look faster may turn from INCONCLUSIVE to SAME on its way to 0.
            if (pair->change >= 0.0) {
                assert_true(now >= worst);
                worst = now;
            }
            assert_true(!isfinite(pair->low) ||
                        (pair->low <= pair->change && pair->change <= pair->high));
            // What the row says it could have seen is what it did see.
            assert_int_equal(pair->verdict == COMPARISON_SLOWER,
                             pair->change >= pair->smallest_effect);
            shift_row(table, 0, 0.002 * pow(1.06, step));
        }
    }
    // All stages were passed, or nothing was tested.
    assert_true(reached[1] > 0 && reached[2] > 0 && reached[3] > 0);
    free(table);
}

/// Rows of equal machine code are never SLOWER, and do not change what is said of others.
static void equal_code_is_never_slower(void **state) {
    (void)state;
    static const struct noise noise = {8, 0.005, 0.0, 0.0};
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    random_state = 5;
    simulate(table, &noise, 0.0);
    for (size_t i = 0; i < ROWS / 2; i++) {
        table->pairs[i].same_code = true;
        shift_row(table, i, i % 3 == 0 ? 0.5 : i % 3 == 1 ? -0.5 : 0.0);
    }
    shift_row(table, ROWS - 1, 0.5);
    (void)compare_judge(table->pairs, ROWS, &rules);
    for (size_t i = 0; i < ROWS / 2; i++) {
        assert_int_equal(table->pairs[i].verdict,
                         i % 3 == 2 ? COMPARISON_SAME : COMPARISON_ENV_DRIFT);
    }
    assert_int_equal(table->pairs[ROWS - 1].verdict, COMPARISON_SLOWER);
    // The same without the rows of equal code.
    struct compare_pair alone[ROWS / 2];
    memcpy(alone, &table->pairs[ROWS / 2], sizeof(alone));
    (void)compare_judge(alone, ROWS / 2, &rules);
    for (size_t i = 0; i < ROWS / 2; i++) {
        assert_int_equal(alone[i].verdict, table->pairs[ROWS / 2 + i].verdict);
        assert_near(alone[i].smallest_effect, table->pairs[ROWS / 2 + i].smallest_effect, 1e-12);
    }
    free(table);
}

/// SAME needs proof: many quiet launches have it, few have not.
static void same_needs_proof(void **state) {
    (void)state;
    struct table *table = malloc(sizeof(*table));
    assert_non_null(table);
    random_state = 6;
    simulate(table, &(struct noise){20, 0.003, 0.0, 0.0}, 0.0);
    (void)compare_judge(table->pairs, ROWS, &rules);
    assert_int_equal(count_verdict(table, COMPARISON_SAME), ROWS);
    simulate(table, &(struct noise){5, 0.003, 0.0, 0.0}, 0.0);
    const struct compare_added added = compare_judge(table->pairs, ROWS, &rules);
    assert_int_equal(count_verdict(table, COMPARISON_INCONCLUSIVE), ROWS);
    assert_near(added.base, rules.launch_floor, 0.0);
    // A table that is noisier than the floor raises it.
    simulate(table, &(struct noise){5, 0.20, 0.0, 0.0}, 0.0);
    const struct compare_added more = compare_judge(table->pairs, ROWS, &rules);
    assert_true(more.base > 0.15 && more.base < 0.25 && more.now > 0.15 && more.now < 0.25);
    // Six launches on a side are taken at their word.
    simulate(table, &(struct noise){6, 0.20, 0.0, 0.0}, 0.0);
    const struct compare_added none = compare_judge(table->pairs, ROWS, &rules);
    assert_true(none.base <= 0.0 && none.now <= 0.0);
    free(table);
}

/// Values without any spread: certain where there are several launches, worthless where there is
/// but one and nothing is assumed.
static void no_spread_at_all(void **state) {
    (void)state;
    double base[6] = {1, 1, 1, 1, 1, 1}, now[6] = {1.02, 1.02, 1.02, 1.02, 1.02, 1.02};
    struct compare_side a = {.launches = 6, .log_ns = base}, b = {.launches = 6, .log_ns = now};
    struct compare_pair pair = {.base = &a, .now = &b};
    (void)compare_judge(&pair, 1, &rules);
    assert_int_equal(pair.verdict, COMPARISON_SLOWER);
    now[0] = now[1] = now[2] = now[3] = now[4] = now[5] = 1.0;
    (void)compare_judge(&pair, 1, &rules);
    assert_int_equal(pair.verdict, COMPARISON_SAME);
    now[0] = 3.0;
    a.launches = b.launches = 1;
    (void)compare_judge(&pair, 1, &(struct compare_rules){0.01, 0.0, 0.01});
    assert_int_equal(pair.verdict, COMPARISON_INCONCLUSIVE);
    assert_true(isnan(pair.low) && isnan(pair.smallest_effect));
    (void)compare_judge(&pair, 1, &rules);
    assert_int_equal(pair.verdict, COMPARISON_SLOWER);
    (void)compare_judge(&pair, 0, &rules);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tails_have_their_closed_forms),
        cmocka_unit_test(tails_join_the_normal_distribution),
        cmocka_unit_test(quantiles_undo_tails),
        cmocka_unit_test(false_alarms_stay_within_the_rate),
        cmocka_unit_test(a_drift_between_the_runs_is_no_regression),
        cmocka_unit_test(faster_errs_as_rarely),
        cmocka_unit_test(slow_downs_are_found),
        cmocka_unit_test(a_bigger_slow_down_is_never_judged_milder),
        cmocka_unit_test(equal_code_is_never_slower),
        cmocka_unit_test(same_needs_proof),
        cmocka_unit_test(no_spread_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
