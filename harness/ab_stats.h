/// The verdicts of `ab`: a sequential test over launches, row by row, and the table's false
/// discovery rate under optional stopping.
///
/// What a row's launch yields is one number x, the median of its log-ratios (new / base). Only the
/// sign of x - floor is used.
///
/// Row. H0: given all that happened before, a launch lies above the floor with a probability of at
/// most 1/2; that is, the conditional median of x is at most the floor. Under H0 the product of (2p
/// for a launch above, 2(1-p) for one that is not) is a nonnegative supermartingale for every p in
/// [1/2, 1], and so is its average over p uniform in [1/2, 1]: the one-sided beta-binomial mixture
/// (Howard, Ramdas, McAuliffe, Sekhon: Time-uniform, nonparametric, nonasymptotic confidence
/// sequences, Annals of Statistics 49, 2021). It starts at 1, so that its value at any
/// stopping time is an e-value: its expectation is at most 1 under H0 (optional stopping), whatever
/// rule decides when to look and when to stop.
///
/// Table. e-BH (Wang and Ramdas: False discovery rate control with e-values, Journal of the Royal
/// Statistical Society B 84, 2022): the k largest of m e-values are discoveries when the
/// k-th is at least m / (rate * k). The false discovery rate is at most `rate`, however the
/// e-values depend on each other. A row whose verdict is settled is stopped: its e-values stay as
/// they are, so that a discovery stays one as further rows join. (What must not be done is to use
/// the largest value that a row ever had; Tavyrikov, Goeman, de Heide: Carefree multiple testing
/// with e-processes, 2025.)
///
/// Why this holds here. Stopping rules look at all rows, so H0 must hold given the past of all rows
/// (Wang, Dandapanthula, Ramdas: Anytime-valid FDR control with the stopped e-BH procedure, 2025).
/// A launch is a fresh process with load order, addresses and the order within each pair drawn
/// anew, and looks are taken between launches only. Where both sides do the same work, swapping
/// them changes nothing but those draws: x is as likely positive as negative by construction, given
/// any past, and however the machine misbehaves.
///
/// What is assumed: nothing of the distribution's shape (no normality, symmetry, equal spread, or
/// independence of rows); noise that favours neither side. What is not noise: a difference that the
/// two builds have in every launch counts as a difference, such as another place of a function
/// within its page.
#ifndef MHA_AB_STATS_H
#define MHA_AB_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "comparison.h"

/// Log e-value of `above` out of `count` launches, against the claim that a launch is above with a
/// probability of at most 1/2. 0 for none.
double ab_log_evidence(size_t above, size_t count);

/// Gets the least number of launches out of `count` that must be above for a log e-value of at
/// least `wanted`; count + 1 when not even all are enough.
size_t ab_least_above(size_t count, double wanted);

/// Gets the least number of launches that can reach a log e-value of `wanted`, all of them above.
size_t ab_least_launches(double wanted);

/// One row's launches.
struct ab_series {
    size_t count;
    double *x;  ///< [count] medians of log-ratios.
    /// Launches above +floor, below +floor, above -floor, below -floor.
    size_t above_upper, below_upper, above_lower, below_lower;
    enum comparison_verdict verdict;  ///< INCONCLUSIVE until it is settled.
};

/// The rows whose verdicts are held together. Rows that end in an ERROR stay counted.
struct ab_table {
    size_t count;
    struct ab_series *series;  ///< [count]
    double floor;              ///< Log-ratio, > 0 or 0.
    double rate;               ///< False discovery rate of each verdict's set.
};

void ab_table_make(struct ab_table *table, size_t count, double floor, double rate);

/// Adds a launch to a row that is not settled.
void ab_table_add(struct ab_table *table, size_t row, double x);

/// Looks at the table: settles what can be settled as SLOWER, FASTER or SAME. Returns how many rows
/// have become settled.
size_t ab_table_look(struct ab_table *table);

void ab_table_free(struct ab_table *table);

/// What a row's launches tell, as changes (new / base - 1). NAN where there are too few.
struct ab_estimate {
    double change;
    /// Confidence sequence of the median at 1 - rate, for this row alone: it holds at every number
    /// of launches at once. From the same e-values, at 2 / rate on each side.
    double low, high;
    /// The least change that these launches would have shown as SLOWER, had they had it, beside the
    /// discoveries that there are.
    double smallest_effect;
};
struct ab_estimate ab_table_estimate(const struct ab_table *table, size_t row);

#endif
