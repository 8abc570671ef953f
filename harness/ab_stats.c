#include "ab_stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "stats.h"

double ab_log_evidence(size_t above, size_t count) {
    // The integral of 2 (2p)^s (2 - 2p)^(n-s) over [1/2, 1] is a tail of the beta distribution, and
    // that is a binomial one: 2^(n+1) / ((n+1) C(n,s)) * P(Binomial(n+1, 1/2) <= s). The tail's
    // terms are summed as ratios to its last one, C(n+1,s), which leaves sum / (n+1-s). What
    // overflows is evidence beyond any threshold.
    const size_t trials = count + 1;
    double sum = 0, ratio = 1;
    for (size_t k = above + 1; k-- > 0 && ratio > 1e-18 * sum;) {
        sum += ratio;
        ratio *= (double)k / (double)(trials - k + 1);
    }
    return log(sum / (double)(trials - above));
}

size_t ab_least_above(size_t count, double wanted) {
    // The evidence grows with the number of launches above.
    size_t low = 0, high = count + 1;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ab_log_evidence(middle, count) >= wanted) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

size_t ab_least_launches(double wanted) {
    size_t count = 0;
    while (ab_log_evidence(count, count) < wanted) {
        count++;
    }
    return count;
}

void ab_table_make(struct ab_table *table, size_t count, double floor, double rate) {
    *table = (struct ab_table){count, diag_alloc(calloc(count + 1, sizeof(*table->series))), floor,
                               rate};
    for (size_t i = 0; i < count; i++) {
        table->series[i].verdict = COMPARISON_INCONCLUSIVE;
    }
}

void ab_table_add(struct ab_table *table, size_t row, double x) {
    struct ab_series *s = &table->series[row];
    s->x = diag_alloc(realloc(s->x, (s->count + 1) * sizeof(*s->x)));
    s->x[s->count++] = x;
    s->above_upper += x > table->floor;
    s->below_upper += x < table->floor;
    s->above_lower += x > -table->floor;
    s->below_lower += x < -table->floor;
}

static int descending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/// Log of the evidence for one verdict. SAME claims two things at once, so that the lesser evidence
/// counts: it is an e-value of "one of the two is not so".
static double log_evidence_for(const struct ab_series *s, enum comparison_verdict verdict) {
    switch (verdict) {
        case COMPARISON_SLOWER:
            return ab_log_evidence(s->above_upper, s->count);
        case COMPARISON_FASTER:
            return ab_log_evidence(s->below_lower, s->count);
        default:
            return fmin(ab_log_evidence(s->below_upper, s->count),
                        ab_log_evidence(s->above_lower, s->count));
    }
}

/// e-BH over the stopped e-values of one verdict.
static size_t settle(struct ab_table *table, enum comparison_verdict verdict) {
    double *evidence = diag_alloc(calloc(2 * table->count + 1, sizeof(*evidence)));
    double *sorted = evidence + table->count;
    for (size_t i = 0; i < table->count; i++) {
        evidence[i] = log_evidence_for(&table->series[i], verdict);
    }
    memcpy(sorted, evidence, table->count * sizeof(*sorted));
    qsort(sorted, table->count, sizeof(*sorted), descending);
    double least = (double)INFINITY;
    for (size_t k = 1; k <= table->count; k++) {
        const double wanted = log((double)table->count / (table->rate * (double)k));
        if (sorted[k - 1] >= wanted) {
            least = wanted;
        }
    }
    size_t settled = 0;
    for (size_t i = 0; i < table->count; i++) {
        // A row that was stopped for another verdict keeps that one: leaving it out can only make
        // the set of discoveries smaller by rows that e-BH would have let in.
        if (evidence[i] >= least && table->series[i].verdict == COMPARISON_INCONCLUSIVE) {
            table->series[i].verdict = verdict;
            settled++;
        }
    }
    free(evidence);
    return settled;
}

size_t ab_table_look(struct ab_table *table) {
    return settle(table, COMPARISON_SLOWER) + settle(table, COMPARISON_FASTER) +
           settle(table, COMPARISON_SAME);
}

void ab_table_free(struct ab_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        free(table->series[i].x);
    }
    free(table->series);
    memset(table, 0, sizeof(*table));
}

struct ab_estimate ab_table_estimate(const struct ab_table *table, size_t row) {
    const struct ab_series *s = &table->series[row];
    struct ab_estimate e = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
    if (s->count == 0) {
        return e;
    }
    double *x = diag_alloc(calloc(s->count, sizeof(*x)));
    memcpy(x, s->x, s->count * sizeof(*x));
    qsort(x, s->count, sizeof(*x), descending);
    const double center = stats_median(x, s->count);
    e.change = expm1(center);
    const size_t side = ab_least_above(s->count, log(2 / table->rate));
    if (side <= s->count) {
        // Values below the `side`-th largest have that many launches above them, and are refuted.
        e.low = expm1(x[side - 1]);
        e.high = expm1(x[s->count - side]);
    }
    // As one more discovery beside the others.
    size_t discoveries = 1;
    for (size_t i = 0; i < table->count; i++) {
        discoveries += i != row && table->series[i].verdict == COMPARISON_SLOWER;
    }
    const size_t least =
        ab_least_above(s->count, log((double)table->count / (table->rate * (double)discoveries)));
    if (least <= s->count) {
        e.smallest_effect = expm1(table->floor + center - x[least - 1]);
    }
    free(x);
    return e;
}
