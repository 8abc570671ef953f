/// The judgement of a table of cases.
///
/// Per case: Welch's t test (Welch, The generalization of "Student's" problem when several
/// different population variances are involved, 1947) on the logarithms of the launches' medians,
/// with Satterthwaite's degrees of freedom. Times are skewed to the right and their spread grows
/// with them; both are gone in logarithms, where a slow-down is a shift. Rank and permutation tests
/// were no choice: with five launches a side their smallest p is 1/252, which no correction for a
/// table of many cases leaves standing.
///
/// Few launches: below six a variance is too poorly known. What is added to it is no estimate but
/// an assumption, the launch floor, or the typical spread of the table's rows where that is larger.
/// It takes no degrees of freedom: where the true spread is no larger than what was assumed, the
/// sum exceeds the true variance whatever the estimate, and the test errs less often than it says.
///
/// Drift: between two runs the machine changes, by as much for all rows of a kind, and no number of
/// launches within a run tells of it. Where the table has rows enough, its bulk does: the null
/// hypothesis is taken from it (Efron, Large-scale simultaneous hypothesis testing: the choice of a
/// null hypothesis, Journal of the American Statistical Association 99, 2004). The median shift of
/// all rows is added to the floor on its side, and what the rows scatter around it beyond their own
/// errors to every row's variance. So a build that slows down most of the table goes unseen: two
/// separate runs cannot tell it from a slower machine, and the report says by how much the table
/// moved.
///
/// Verdicts: SLOWER is the rejection of "not slower than the floor", one-sided; FASTER of its
/// mirror. Each family holds its false discovery rate by Benjamini and Yekutieli (The control of
/// the false discovery rate in multiple testing under dependency, 2001), which is valid under any
/// dependence: rows share their launches, so that nothing may be assumed of it. Rows of equal
/// machine code are families of their own; theirs cannot be discoveries, and would otherwise lend
/// the others their share of errors. SAME is an equivalence: the interval lies within the floor,
/// two one-sided tests (Schuirmann, A comparison of the two one-sided tests procedure, 1987).
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "stats.h"
#include "student.h"

/// What the test needs to know of a case.
struct evidence {
    double shift;           ///< Estimate of log(new / base).
    double error;           ///< Its standard error; INFINITY: nothing is known of it.
    double df;              ///< Degrees of freedom of that.
    double slower, faster;  ///< p values.
    bool is_slower, is_faster;
    double slower_limit;  ///< A p value up to this would have made it SLOWER.
};

static double mean(const double *values, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

static double variance(const double *values, size_t count) {
    const double middle = mean(values, count);
    double sum = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += (values[i] - middle) * (values[i] - middle);
    }
    return sum / (double)(count - 1);
}

/// Gets the spread between launches of a typical row: the median over the rows of the variance,
/// each divided by what the median of its distribution is for a variance of 1. 0 without rows of
/// two launches.
static double typical_spread(const struct compare_pair *pairs, size_t count, bool now) {
    double *variances = diag_alloc(calloc(count + 1, sizeof(*variances)));
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        const struct compare_side *side = now ? pairs[i].now : pairs[i].base;
        if (side->launches >= 2) {
            // Median of chi-squared with k degrees of freedom over k, by Wilson and Hilferty
            // (1931).
            const double k = (double)side->launches - 1.0;
            const double root = 1.0 - 2.0 / (9.0 * k);
            variances[known++] = variance(side->log_ns, side->launches) / (root * root * root);
        }
    }
    const double typical = known > 0 ? stats_median(variances, known) : 0.0;
    free(variances);
    return sqrt(typical);
}

/// Variance of a side's mean: what was estimated, with its degrees of freedom, and what was added.
struct uncertainty {
    double estimated, df, added;
};

static struct uncertainty uncertainty_of(const struct compare_side *side, double added) {
    const double launches = (double)side->launches;
    struct uncertainty u = {0.0, 1.0, 0.0};
    if (side->launches >= 2) {
        u.estimated = variance(side->log_ns, side->launches) / launches;
        u.df = launches - 1.0;
    } else if (side->within_df > 0) {
        u.estimated = side->within * side->within;
        u.df = (double)side->within_df;
    }
    if (side->launches < COMPARE_LAUNCHES_ENOUGH) {
        u.added = added * added / launches;
    }
    // A single value without any spread is no certainty.
    if (side->launches < 2 && !(u.estimated + u.added > 0.0)) {
        u.added = (double)INFINITY;
    }
    return u;
}

/// Gets P(T >= t) for an estimate that exceeds its limit by `excess`.
static double tail(double excess, const struct evidence *evidence) {
    if (isinf(evidence->error)) {
        return 1.0;
    }
    if (!(evidence->error > 0.0)) {
        return excess > 0.0 ? 0.0 : 1.0;
    }
    return student_tail(excess / evidence->error, evidence->df);
}

static struct evidence weigh(const struct compare_pair *pair, const struct compare_added *added) {
    const struct uncertainty a = uncertainty_of(pair->base, added->base);
    const struct uncertainty b = uncertainty_of(pair->now, added->now);
    const double total = a.estimated + a.added + b.estimated + b.added;
    const double spent = a.estimated * a.estimated / a.df + b.estimated * b.estimated / b.df;
    struct evidence evidence = {0};
    evidence.shift = mean(pair->now->log_ns, pair->now->launches) -
                     mean(pair->base->log_ns, pair->base->launches);
    evidence.error = sqrt(total);
    evidence.df = spent > 0.0 && isfinite(total) ? total * total / spent : (double)INFINITY;
    return evidence;
}

/// Takes the drift between the runs from the bulk of the rows whose code is not known to be equal,
/// and adds its scatter to their errors. Rows of equal code show the drift; they neither hide it in
/// others nor are excused by it.
static struct compare_drift take_drift(const struct compare_pair *pairs, struct evidence *evidence,
                                       size_t count) {
    struct compare_drift drift = {0, 0.0, 0.0};
    double *shifts = diag_alloc(calloc(count + 1, sizeof(*shifts)));
    double *variances = diag_alloc(calloc(count + 1, sizeof(*variances)));
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(evidence[i].error) && isfinite(evidence[i].shift) && !pairs[i].same_code) {
            shifts[known] = evidence[i].shift;
            variances[known++] = evidence[i].error * evidence[i].error;
        }
    }
    if (known >= COMPARE_DRIFT_ROWS) {
        const double scatter = STATS_SIGMA_PER_MAD * stats_mad(shifts, known);
        const double beyond = scatter * scatter - stats_median(variances, known);
        drift.rows = known;
        drift.shift = stats_median(shifts, known);
        drift.scatter = sqrt(fmax(beyond, 0.0));
    }
    for (size_t i = 0; i < count; i++) {
        struct evidence *e = &evidence[i];
        const double own = e->error * e->error;
        const double all = own + drift.scatter * drift.scatter;
        // The scatter comes from the whole table: as many degrees of freedom as it has rows.
        const double spent = own * own / e->df + (all - own) * (all - own) / (double)(known + 1);
        if (drift.scatter > 0.0 && isfinite(all) && !pairs[i].same_code) {
            e->df = spent > 0.0 ? all * all / spent : (double)INFINITY;
            e->error = sqrt(all);
        }
    }
    free(shifts);
    free(variances);
    return drift;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/// Steps up through p values (sorted here): gets how many are rejected. `step` is what one more
/// rejection allows a p value to be.
static size_t step_up(double *p, size_t count, double error_rate, double *step) {
    double harmonic = 0.0;
    for (size_t i = 1; i <= count; i++) {
        harmonic += 1.0 / (double)i;
    }
    *step = count > 0 ? error_rate / ((double)count * harmonic) : 0.0;
    qsort(p, count, sizeof(*p), compare_doubles);
    size_t rejected = 0;
    for (size_t i = 0; i < count; i++) {
        if (p[i] <= *step * (double)(i + 1)) {
            rejected = i + 1;
        }
    }
    return rejected;
}

/// Decides a family: the rows whose `same_code` is as given.
static void decide(const struct compare_pair *pairs, struct evidence *evidence, size_t count,
                   bool same_code, double error_rate) {
    double *p = diag_alloc(calloc(count + 1, sizeof(*p)));
    for (int faster = 0; faster < 2; faster++) {
        size_t members = 0;
        for (size_t i = 0; i < count; i++) {
            if (pairs[i].same_code == same_code) {
                p[members++] = faster ? evidence[i].faster : evidence[i].slower;
            }
        }
        double step = 0.0;
        const size_t rejected = step_up(p, members, error_rate, &step);
        const double limit = step * (double)rejected;
        // As if this row came on top of those that are rejected.
        const double next = step * (double)(rejected < members ? rejected + 1 : members);
        for (size_t i = 0; i < count; i++) {
            if (pairs[i].same_code != same_code) {
                continue;
            }
            if (faster) {
                evidence[i].is_faster = rejected > 0 && evidence[i].faster <= limit;
            } else {
                evidence[i].is_slower = rejected > 0 && evidence[i].slower <= limit;
                evidence[i].slower_limit = evidence[i].is_slower ? limit : next;
            }
        }
    }
    free(p);
}

static void conclude(struct compare_pair *pair, const struct evidence *evidence, double log_floor,
                     double slower_floor, double error_rate) {
    pair->change = expm1(evidence->shift);
    pair->low = pair->high = pair->smallest_effect = UNKNOWN;
    bool within = false;
    if (isfinite(evidence->error)) {
        const double reach =
            evidence->error > 0.0
                ? evidence->error * student_quantile(error_rate / 2.0, evidence->df)
                : 0.0;
        const double least =
            evidence->error > 0.0
                ? evidence->error *
                      student_quantile(fmin(evidence->slower_limit, 0.5), evidence->df)
                : 0.0;
        pair->low = expm1(evidence->shift - reach);
        pair->high = expm1(evidence->shift + reach);
        pair->smallest_effect = expm1(slower_floor + least);
        within = evidence->shift - reach >= -log_floor && evidence->shift + reach <= log_floor;
    }
    if (pair->same_code) {
        pair->verdict =
            evidence->is_slower || evidence->is_faster ? COMPARISON_ENV_DRIFT : COMPARISON_SAME;
    } else if (evidence->is_slower) {
        pair->verdict = COMPARISON_SLOWER;
    } else if (evidence->is_faster) {
        pair->verdict = COMPARISON_FASTER;
    } else {
        pair->verdict = within ? COMPARISON_SAME : COMPARISON_INCONCLUSIVE;
    }
}

static bool has_few(const struct compare_pair *pairs, size_t count, bool now) {
    for (size_t i = 0; i < count; i++) {
        const struct compare_side *side = now ? pairs[i].now : pairs[i].base;
        if (side->launches < COMPARE_LAUNCHES_ENOUGH) {
            return true;
        }
    }
    return false;
}

struct compare_added compare_judge(struct compare_pair *pairs, size_t count,
                                   const struct compare_rules *rules) {
    const double log_floor = log1p(rules->floor);
    struct compare_added added = {0.0, 0.0, {0, 0.0, 0.0}};
    if (has_few(pairs, count, false)) {
        added.base = fmax(rules->launch_floor, typical_spread(pairs, count, false));
    }
    if (has_few(pairs, count, true)) {
        added.now = fmax(rules->launch_floor, typical_spread(pairs, count, true));
    }
    struct evidence *evidence = diag_alloc(calloc(count + 1, sizeof(*evidence)));
    for (size_t i = 0; i < count; i++) {
        evidence[i] = weigh(&pairs[i], &added);
    }
    added.drift = take_drift(pairs, evidence, count);
    const double slower_floor = log_floor + fmax(added.drift.shift, 0.0);
    const double faster_floor = log_floor + fmax(-added.drift.shift, 0.0);
    for (size_t i = 0; i < count; i++) {
        const bool same = pairs[i].same_code;
        evidence[i].slower =
            tail(evidence[i].shift - (same ? log_floor : slower_floor), &evidence[i]);
        evidence[i].faster =
            tail(-evidence[i].shift - (same ? log_floor : faster_floor), &evidence[i]);
    }
    decide(pairs, evidence, count, false, rules->error_rate);
    decide(pairs, evidence, count, true, rules->error_rate);
    for (size_t i = 0; i < count; i++) {
        conclude(&pairs[i], &evidence[i], log_floor, slower_floor, rules->error_rate);
    }
    free(evidence);
    return added;
}
