/// Change points: how often noise alone makes a step, how often a step of 5 MAD is seen within
/// three commits, and what single series yield. All noise is seeded.
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

#include "changepoint.h"
#include "stats.h"

// --- noise

/// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
static uint64_t random_state;

static uint64_t next_bits(void) {
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/// Gets a number between 0 and 1, neither of them.
static double uniform(void) {
    return ((double)(next_bits() >> 11) + 0.5) * 0x1p-53;
}

static const double pi = 3.14159265358979323846;

/// Box and Muller.
static double normal(void) {
    const double radius = sqrt(-2.0 * log(uniform()));
    return radius * cos(2.0 * pi * uniform());
}

static double centred(void) {
    return 2.0 * uniform() - 1.0;
}

static double laplace(void) {
    const double sign = uniform() < 0.5 ? -1.0 : 1.0;
    return sign * -log(uniform());
}

static double student(int degrees) {
    double squares = 0.0;
    for (int i = 0; i < degrees; i++) {
        const double x = normal();
        squares += x * x;
    }
    return normal() / sqrt(squares / degrees);
}

static double student_3(void) {
    return student(3);
}

static double student_2(void) {
    return student(2);
}

/// Scaled down: times stay positive, but for one in some hundred thousand.
static double cauchy(void) {
    return 0.01 * tan(pi * (uniform() - 0.5));
}

/// One in ten is from a distribution ten times as wide.
static double contaminated(void) {
    return (uniform() < 0.1 ? 10.0 : 1.0) * normal();
}

static double exponential(void) {
    return -log(uniform());
}

static double log_normal(void) {
    return exp(normal());
}

/// Now and then the slow one of two states, as of memory that was laid out badly.
static double bimodal(void) {
    return (uniform() < 0.3 ? 4.0 : 0.0) + 0.5 * normal();
}

/// What a coarse clock makes of it: most differences are 0 or a tick.
static double rounded(void) {
    return rint(normal());
}

struct noise {
    const char *name;
    double (*draw)(void);
    double mad;          ///< Of the distribution; 0: not needed.
    double least_power;  ///< Share of steps of 5 MAD that must be seen; 0: only told.
};

/// The MAD of a symmetric distribution is its upper quartile. What can be seen of 5 MAD has a limit
/// that no method passes: under heavy tails three values of noise lie as far out by themselves more
/// than once in 1000 commits.
static const struct noise noises[] = {
    {"normal", normal, 0.67449, 0.90},
    {"uniform", centred, 0.5, 0.99},
    {"laplace", laplace, 0.69315, 0.60},
    {"student, 3 degrees", student_3, 0.76489, 0.60},
    {"student, 2 degrees", student_2, 0.81650, 0.0},
    {"cauchy", cauchy, 0.01, 0.0},
    {"contaminated", contaminated, 0.0, 0.0},
    {"exponential", exponential, 0.0, 0.0},
    {"log-normal", log_normal, 0.0, 0.0},
    {"bimodal", bimodal, 0.0, 0.0},
    {"rounded", rounded, 0.0, 0.0},
};
enum { NOISES = sizeof(noises) / sizeof(noises[0]) };

/// Level and noise of all series: 1000 ns with a scale of 1 %.
static const double level_ns = 1000.0, scale_ns = 10.0;

static void fill(double *values, size_t count, const struct noise *noise) {
    for (size_t i = 0; i < count; i++) {
        values[i] = fmax(level_ns + scale_ns * noise->draw(), 1.0);
    }
}

static size_t count_steps(const double *values, size_t count) {
    struct changepoint *steps = NULL;
    const size_t found = changepoints_find(values, count, &steps);
    free(steps);
    return found;
}

// --- rates

/// One false step in 1000 commits at most, under noise of every shape. What is found at a commit
/// does not depend on later ones, so that one look over a series is all the looks that a gate would
/// have had, one after each commit.
static void test_false_steps(void **state) {
    (void)state;
    enum { SERIES = 400, COMMITS = 1000 };
    double values[COMMITS];
    for (size_t n = 0; n < NOISES; n++) {
        random_state = 1000 + n;
        size_t found = 0;
        for (size_t i = 0; i < SERIES; i++) {
            fill(values, COMMITS, &noises[n]);
            found += count_steps(values, COMMITS);
        }
        printf("%-20s %7.3f false steps in 1000 commits (%d series of %d)\n", noises[n].name,
               (double)found / SERIES, SERIES, COMMITS);
        assert_true(found <= SERIES);
    }
}

/// Short histories, most of which is the time in which little is known of the noise: thousands of
/// them, under noise that is not extreme.
static void test_false_steps_of_short_series(void **state) {
    (void)state;
    enum { SERIES = 4000, COMMITS = 50, SHAPES = 2 };
    double values[COMMITS];
    for (size_t n = 0; n < NOISES; n++) {
        random_state = 2000 + n;
        size_t found = 0;
        for (size_t i = 0; i < SERIES; i++) {
            fill(values, COMMITS, &noises[n]);
            found += count_steps(values, COMMITS);
        }
        const double rate = 1000.0 * (double)found / ((double)SERIES * COMMITS);
        printf("%-20s %7.3f false steps in 1000 commits (%d series of %d)\n", noises[n].name, rate,
               SERIES, COMMITS);
        // The first two are normal and uniform noise; of heavy tails 50 commits show too little.
        assert_true(n >= SHAPES || rate <= 1.0);
    }
}

/// Tells whether a step in the right direction is found from `first` on, within three commits.
static bool is_seen(const double *values, size_t first, bool slower) {
    struct changepoint *steps = NULL;
    const size_t found = changepoints_find(values, first + 3, &steps);
    bool seen = false;
    for (size_t i = 0; i < found; i++) {
        seen = seen || (steps[i].found >= first && (steps[i].after > steps[i].before) == slower);
    }
    free(steps);
    return seen;
}

static void test_steps_of_5_mad(void **state) {
    (void)state;
    enum { SERIES = 4000, QUIET = 20, COMMITS = QUIET + 3 };
    double values[COMMITS];
    for (size_t n = 0; n < NOISES; n++) {
        if (noises[n].mad <= 0.0) {
            continue;
        }
        random_state = 3000 + n;
        size_t seen = 0;
        for (size_t i = 0; i < SERIES; i++) {
            fill(values, COMMITS, &noises[n]);
            const bool slower = i % 2 == 0;
            for (size_t c = QUIET; c < COMMITS; c++) {
                values[c] += (slower ? 5.0 : -5.0) * noises[n].mad * scale_ns;
            }
            seen += is_seen(values, QUIET, slower);
        }
        const double share = (double)seen / SERIES;
        printf("%-20s %6.2f %% of steps of 5 MAD seen within 3 commits after %d (%d series)\n",
               noises[n].name, 100.0 * share, QUIET, SERIES);
        assert_true(share >= noises[n].least_power);
    }
}

/// Twice the step is seen whatever the noise is like.
static void test_steps_of_10_mad(void **state) {
    (void)state;
    enum { SERIES = 2000, QUIET = 20, COMMITS = QUIET + 3, SHAPES = 4 };
    double values[COMMITS];
    for (size_t n = 0; n < SHAPES; n++) {
        random_state = 4000 + n;
        size_t seen = 0;
        for (size_t i = 0; i < SERIES; i++) {
            fill(values, COMMITS, &noises[n]);
            for (size_t c = QUIET; c < COMMITS; c++) {
                values[c] += 10.0 * noises[n].mad * scale_ns;
            }
            seen += is_seen(values, QUIET, true);
        }
        const double share = (double)seen / SERIES;
        printf("%-20s %6.2f %% of steps of 10 MAD seen within 3 commits (%d series)\n",
               noises[n].name, 100.0 * share, SERIES);
        assert_true(share >= 0.9);
    }
}

/// Steps of 1.5 standard deviations need more commits, but not many.
static void test_small_steps(void **state) {
    (void)state;
    enum { SERIES = 1000, QUIET = 50, COMMITS = 100 };
    double values[COMMITS];
    random_state = 5000;
    size_t seen = 0;
    for (size_t i = 0; i < SERIES; i++) {
        fill(values, COMMITS, &noises[0]);
        for (size_t c = QUIET; c < COMMITS; c++) {
            values[c] += 1.5 * scale_ns;
        }
        seen += count_steps(values, COMMITS) > 0;
    }
    printf("%5.1f %% of steps of 1.5 standard deviations seen within 50 commits\n",
           100.0 * (double)seen / SERIES);
    assert_true(seen >= SERIES * 95 / 100);
}

/// A spike adds no step, however large it is and wherever it stands.
static void test_spikes(void **state) {
    (void)state;
    enum { SERIES = 3000, COMMITS = 60 };
    static const double factors[] = {0.01, 0.5, 0.9, 1.1, 2.0, 100.0};
    enum { FACTORS = sizeof(factors) / sizeof(factors[0]) };
    double values[COMMITS];
    size_t without = 0, with = 0;
    random_state = 6000;
    for (size_t i = 0; i < SERIES; i++) {
        fill(values, COMMITS, &noises[i % 2]);
        without += count_steps(values, COMMITS);
        values[i % COMMITS] *= factors[i % FACTORS];
        with += count_steps(values, COMMITS);
    }
    printf("%zu false steps in %d series without, %zu with a spike\n", without, SERIES, with);
    // Within what noise alone is allowed: one in 1000 commits.
    assert_true(with <= (size_t)SERIES * COMMITS / 1000);
}

// --- single series

/// Fills with a pattern that no test can take for chance: level, then level + noise in turn.
static void fill_pattern(double *values, size_t count) {
    static const double pattern[] = {0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5};
    for (size_t i = 0; i < count; i++) {
        values[i] = level_ns + pattern[i % (sizeof(pattern) / sizeof(pattern[0]))];
    }
}

static void test_one_step(void **state) {
    (void)state;
    double values[40];
    struct changepoint *steps = NULL;
    for (size_t first = 20; first <= 37; first++) {
        for (int direction = -1; direction <= 1; direction += 2) {
            fill_pattern(values, 40);
            // The outermost values of noise lie half-way to a step of 5 MAD.
            const bool sharp = first % 2 == 0;
            const double step = (sharp ? 10.0 : 5.0) * stats_mad(values, first);
            for (size_t i = first; i < 40; i++) {
                values[i] += direction * step;
            }
            assert_int_equal(changepoints_find(values, 40, &steps), 1);
            assert_in_range(steps[0].first, sharp ? first : first - 1, sharp ? first : first + 1);
            assert_in_range(steps[0].found, first, first + 2);
            assert_true((steps[0].after - steps[0].before) * direction > 0.7 * step);
            free(steps);
        }
    }
}

static void test_spike_is_none(void **state) {
    (void)state;
    double values[60];
    for (size_t at = 0; at < 60; at++) {
        for (int i = 0; i < 4; i++) {
            static const double factors[] = {0.001, 0.99, 1.01, 1000.0};
            fill_pattern(values, 60);
            values[at] *= factors[i];
            assert_int_equal(count_steps(values, 60), 0);
        }
    }
    // Two at once are no level either.
    fill_pattern(values, 60);
    values[58] = values[59] = 2.0 * level_ns;
    assert_int_equal(count_steps(values, 60), 0);
}

/// Slower, then repaired a few commits later: both are seen, and where they were.
static void test_step_and_back(void **state) {
    (void)state;
    double values[60];
    struct changepoint *steps = NULL;
    for (size_t length = 3; length <= 20; length++) {
        fill_pattern(values, 60);
        for (size_t i = 30; i < 30 + length; i++) {
            values[i] += 50.0;
        }
        assert_int_equal(changepoints_find(values, 60, &steps), 2);
        assert_int_equal(steps[0].first, 30);
        assert_true(steps[0].after > steps[0].before);
        assert_int_equal(steps[1].first, 30 + length);
        assert_true(steps[1].after < steps[1].before);
        free(steps);
    }
}

/// What was reported stays reported: more commits only add to it.
static void test_reports_stay(void **state) {
    (void)state;
    enum { COMMITS = 300 };
    double values[COMMITS];
    random_state = 7000;
    for (size_t i = 0; i < COMMITS; i++) {
        values[i] = level_ns + scale_ns * normal() + (double)(i / 60) * 40.0;
    }
    struct changepoint *all = NULL;
    const size_t total = changepoints_find(values, COMMITS, &all);
    assert_true(total >= 4);
    for (size_t count = 0; count <= COMMITS; count++) {
        struct changepoint *steps = NULL;
        const size_t found = changepoints_find(values, count, &steps);
        size_t expected = 0;
        while (expected < total && all[expected].found < count) {
            expected++;
        }
        assert_int_equal(found, expected);
        for (size_t i = 0; i < found; i++) {
            assert_int_equal(steps[i].first, all[i].first);
            assert_int_equal(steps[i].found, all[i].found);
        }
        free(steps);
    }
    free(all);
}

/// Times that are all equal have a MAD of 0; a tick of the clock is no step, a real one is.
static void test_equal_times(void **state) {
    (void)state;
    double values[60];
    struct changepoint *steps = NULL;
    for (size_t i = 0; i < 60; i++) {
        values[i] = level_ns;
    }
    assert_int_equal(changepoints_find(values, 60, &steps), 0);
    assert_null(steps);
    values[40] = 1001.0;
    assert_int_equal(count_steps(values, 60), 0);
    for (size_t i = 40; i < 60; i++) {
        values[i] = 1001.0;
    }
    assert_int_equal(changepoints_find(values, 60, &steps), 1);
    assert_int_equal(steps[0].first, 40);
    assert_int_equal(steps[0].found, 42);
    free(steps);
}

/// The unit of the times changes nothing, nor does the sign of the step.
static void test_scale_free(void **state) {
    (void)state;
    enum { COMMITS = 200 };
    double values[COMMITS], scaled[COMMITS];
    random_state = 8000;
    for (size_t i = 0; i < COMMITS; i++) {
        values[i] = level_ns + scale_ns * laplace() + (i >= 100 ? 60.0 : 0.0);
        scaled[i] = values[i] * 0x1p20;
    }
    struct changepoint *steps = NULL, *same = NULL;
    const size_t found = changepoints_find(values, COMMITS, &steps);
    assert_true(found > 0);
    assert_int_equal(changepoints_find(scaled, COMMITS, &same), found);
    for (size_t i = 0; i < found; i++) {
        assert_int_equal(steps[i].first, same[i].first);
        assert_int_equal(steps[i].found, same[i].found);
    }
    free(steps);
    free(same);
}

static void test_few_commits(void **state) {
    (void)state;
    const double values[] = {1.0, 1.0, 1.0, 9.0, 9.0};
    for (size_t count = 0; count <= 5; count++) {
        assert_int_equal(count_steps(values, count), 0);
    }
    assert_non_null(strstr(changepoint_method(), "Hawkins"));
}

/// With the argument "single" only single series are looked at: emulated and instrumented builds
/// would take minutes to find the same rates.
int main(int argc, char **argv) {
    const struct CMUnitTest rates[] = {
        cmocka_unit_test(test_false_steps),    cmocka_unit_test(test_false_steps_of_short_series),
        cmocka_unit_test(test_steps_of_5_mad), cmocka_unit_test(test_steps_of_10_mad),
        cmocka_unit_test(test_small_steps),    cmocka_unit_test(test_spikes),
    };
    const struct CMUnitTest series[] = {
        cmocka_unit_test(test_one_step),      cmocka_unit_test(test_spike_is_none),
        cmocka_unit_test(test_step_and_back), cmocka_unit_test(test_reports_stay),
        cmocka_unit_test(test_equal_times),   cmocka_unit_test(test_scale_free),
        cmocka_unit_test(test_few_commits),
    };
    const bool single = argc == 2 && strcmp(argv[1], "single") == 0;
    const int failed = cmocka_run_group_tests(series, NULL, NULL);
    return single ? failed : failed + cmocka_run_group_tests(rates, NULL, NULL);
}
