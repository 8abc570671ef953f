#include "changepoint.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "stats.h"

// The thresholds come out of simulations like those of tests/history: at most one false step in
// 1000 commits under normal, uniform, Laplace, Student t (3 and 2 degrees of freedom), Cauchy,
// contaminated, exponential, log-normal, bimodal and rounded noise, and of a step of 5 MAD under
// normal noise all that this leaves.

/// How far the mean of three must lie from the median, in standard deviations of a normal
/// distribution.
static const double quick_threshold = 1.96;
/// One value counts at most so many times the threshold: three must agree.
static const double quick_clip = 1.5;
/// Share of the values before that may lie beyond the three: tail_share + tail_extra / count. For
/// independent values of any distribution all three lie beyond a share p by chance with p^3.
static const double tail_share = 0.03, tail_extra = 2.2;
/// Threshold of the standardised Mann-Whitney statistic at its best split.
static const double rank_threshold = 4.2;
/// Least size of either side in a full window: ranks of fewer are a matter for the other test.
enum { RANK_SIDE = 10 };
/// Values below which a level says too little of its noise.
enum { NOISE_LEAST = 8 };
/// Deviations beyond so many MAD count as just that: the standard deviation of values that may be
/// outliers (about 3.5 normal standard deviations).
static const double noise_clip = 5.2;
/// Least noise, as a share of the level: equal times, as coarse clocks give, have a MAD of 0.
static const double noise_floor = 1e-4;

/// What is known when the commits up to `now` have been seen.
struct state {
    const double *values;
    size_t now;
    size_t start;  ///< First value of the current level.
    /// Deviations of earlier levels' values from their medians, as shares of these, oldest first.
    double *earlier;
    size_t earlier_count;
    // Of the values [rank_from, rank_to): each one's rank among them, halves for ties.
    double rank[CHANGEPOINT_WINDOW + 1];
    size_t rank_from, rank_to;
    // The values [base_from, base_to) in ascending order.
    double base[CHANGEPOINT_WINDOW + 1];
    size_t base_from, base_to;
};

/// A step that one of the tests sees: first value of the new level, +1 for up, -1 for down, 0:
/// none.
struct finding {
    size_t first;
    int direction;
};

static double clip(double value, double limit) {
    return value > limit ? limit : value < -limit ? -limit : value;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_median(const double *sorted, size_t count) {
    return count % 2 == 1 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0;
}

/// Gets how `a` counts towards the rank of `b`.
static double below(double a, double b) {
    return a < b ? 1.0 : a > b ? 0.0 : 0.5;
}

/// Lets the ranks be those of the values [from, now].
static void update_ranks(struct state *s, size_t from) {
    if (s->rank_from > s->rank_to || s->rank_from < s->start) {
        s->rank_from = s->rank_to = s->start;
    }
    while (s->rank_from < from) {
        const double gone = s->values[s->rank_from];
        const size_t left = s->rank_to - s->rank_from - 1;
        for (size_t i = 0; i < left; i++) {
            s->rank[i] = s->rank[i + 1] - below(gone, s->values[s->rank_from + 1 + i]);
        }
        s->rank_from++;
    }
    while (s->rank_to <= s->now) {
        const double added = s->values[s->rank_to];
        const size_t count = s->rank_to - s->rank_from;
        double rank = 1.0;
        for (size_t i = 0; i < count; i++) {
            const double share = below(s->values[s->rank_from + i], added);
            rank += share;
            s->rank[i] += 1.0 - share;
        }
        s->rank[count] = rank;
        s->rank_to++;
    }
}

/// Lets the sorted base hold the values [from, to).
static void update_base(struct state *s, size_t from, size_t to) {
    if (s->base_from < s->start || s->base_to < from || s->base_to > to) {
        s->base_from = s->base_to = from;
    }
    while (s->base_from < from) {
        const size_t count = s->base_to - s->base_from;
        size_t at = 0;
        while (s->base[at] < s->values[s->base_from]) {
            at++;
        }
        memmove(&s->base[at], &s->base[at + 1], (count - at - 1) * sizeof(*s->base));
        s->base_from++;
    }
    while (s->base_to < to) {
        const double added = s->values[s->base_to];
        size_t at = s->base_to - s->base_from;
        for (; at > 0 && s->base[at - 1] > added; at--) {
            s->base[at] = s->base[at - 1];
        }
        s->base[at] = added;
        s->base_to++;
    }
}

/// Gets the value that about `share` of the sorted values lie beyond, at their upper end or, with
/// `direction` -1, at their lower one; the last value where so few have no such thing.
static double tail(const double *sorted, size_t count, double share, int direction) {
    const double place = fmax((double)(count + 1) * share, 1.0);
    const size_t outer = (size_t)place < count ? (size_t)place : count;
    const size_t inner = outer < count ? outer + 1 : outer;
    const double a = direction > 0 ? sorted[count - outer] : sorted[outer - 1];
    const double b = direction > 0 ? sorted[count - inner] : sorted[inner - 1];
    return a + (b - a) * (place - floor(place));
}

/// Collects sorted deviations from the level, as shares of it: those of the current level when it
/// is long enough to speak for itself, else those of earlier ones too. Returns their number.
static size_t collect_noise(const struct state *s, double level,
                            double noise[2 * CHANGEPOINT_WINDOW]) {
    const size_t count = s->base_to - s->base_from;
    size_t collected = 0;
    if (count >= NOISE_LEAST) {
        for (size_t i = 0; i < count; i++) {
            noise[collected++] = s->base[i] / level - 1.0;
        }
    }
    if (count < CHANGEPOINT_QUIET && s->earlier_count > 0) {
        for (size_t i = s->earlier_count; i > 0 && collected < CHANGEPOINT_WINDOW; i--) {
            noise[collected++] = s->earlier[i - 1];
        }
        qsort(noise, collected, sizeof(*noise), compare_doubles);
    }
    return collected;
}

/// Gets the MAD of sorted deviations, which their median is 0 of.
static double deviations_mad(const double *noise, size_t count) {
    // Both halves ascend away from the middle, so that merging them sorts the absolute values.
    size_t right = 0;
    while (right < count && noise[right] < 0.0) {
        right++;
    }
    size_t left = right;
    double last = 0.0, previous = 0.0;
    for (size_t i = 0; i <= count / 2; i++) {
        previous = last;
        if (right >= count || (left > 0 && -noise[left - 1] <= noise[right])) {
            last = -noise[--left];
        } else {
            last = noise[right++];
        }
    }
    return count % 2 == 1 ? last : (previous + last) / 2.0;
}

/// Gets the winsorised standard deviation.
static double deviations_spread(const double *noise, size_t count) {
    const double mad = fmax(deviations_mad(noise, count), noise_floor);
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        const double deviation = clip(noise[i], noise_clip * mad);
        sum += deviation;
        squares += deviation * deviation;
    }
    const double n = (double)count;
    const double variance = (squares - sum * sum / n) / (n - 1.0);
    // Of values that are nearly all equal the squares say little; what is left is the floor.
    return fmax(sqrt(fmax(variance, 0.0)), noise_floor * STATS_SIGMA_PER_MAD);
}

/// The last three commits against those before.
static struct finding test_quick(const struct state *s, size_t from) {
    struct finding finding = {0, 0};
    const size_t first = s->now + 1 - CHANGEPOINT_LEAST;
    const size_t count = first - from;
    const double level = sorted_median(s->base, count);
    double noise[2 * CHANGEPOINT_WINDOW];
    const size_t known = collect_noise(s, level, noise);
    if (known < CHANGEPOINT_QUIET) {
        return finding;
    }
    const double spread = deviations_spread(noise, known);
    const double share = tail_share + tail_extra / (double)known;
    // The median of a few commits is itself uncertain.
    const double limit =
        quick_threshold * spread * sqrt(1.0 + (double)CHANGEPOINT_LEAST / (double)count);
    for (int direction = -1; direction <= 1; direction += 2) {
        double sum = 0.0, nearest = (double)INFINITY;
        for (size_t i = first; i <= s->now; i++) {
            const double deviation = (double)direction * (s->values[i] / level - 1.0);
            sum += clip(deviation, quick_clip * limit);
            nearest = fmin(nearest, deviation);
        }
        if (sum / CHANGEPOINT_LEAST > limit &&
            nearest > (double)direction * tail(noise, known, share, direction)) {
            finding = (struct finding){first, direction};
        }
    }
    if (finding.direction == 0) {
        return finding;
    }
    // Two large values and a quiet one may have been enough: the step lies where it splits the
    // values best, as least squares over the clipped values have it.
    const double far = noise_clip * spread;
    double best = 0.0, total = 0.0, left = 0.0;
    for (size_t i = from; i <= s->now; i++) {
        total += clip(s->values[i] / level - 1.0, far);
    }
    const double n = (double)(s->now + 1 - from);
    for (size_t i = from; i < s->now; i++) {
        left += clip(s->values[i] / level - 1.0, far);
        const double before = (double)(i + 1 - from);
        const double shift =
            (double)finding.direction * ((total - left) / (n - before) - left / before);
        const double gain = shift * fabs(shift) * before * (n - before) / n;
        if (i + 1 >= first && gain > best) {
            best = gain;
            finding.first = i + 1;
        }
    }
    return finding;
}

/// The Mann-Whitney statistic at every split of the window.
static struct finding test_ranks(const struct state *s, size_t from) {
    struct finding finding = {0, 0};
    const size_t count = s->now + 1 - from;
    const size_t side = count >= CHANGEPOINT_WINDOW ? RANK_SIDE : CHANGEPOINT_LEAST;
    double best = rank_threshold, ranks = 0.0;
    for (size_t after = 1; after + side <= count; after++) {
        ranks += s->rank[count - after];
        if (after < side) {
            continue;
        }
        const double n = (double)count, n2 = (double)after;
        // Mean and variance without ties, which only make the variance smaller.
        const double z = (ranks - n2 * (n + 1.0) / 2.0) / sqrt((n - n2) * n2 * (n + 1.0) / 12.0);
        if (fabs(z) > best) {
            best = fabs(z);
            finding = (struct finding){s->now + 1 - after, z > 0.0 ? 1 : -1};
        }
    }
    return finding;
}

/// Begins a new level, and remembers the noise of the one that ended.
static void begin_level(struct state *s, size_t first) {
    const size_t count =
        first - s->start < CHANGEPOINT_WINDOW ? first - s->start : CHANGEPOINT_WINDOW;
    if (count >= NOISE_LEAST) {
        const double *values = &s->values[first - count];
        const double level = stats_median(values, count);
        for (size_t i = 0; i < count; i++) {
            s->earlier[s->earlier_count++] = values[i] / level - 1.0;
        }
    }
    s->start = first;
    s->base_from = s->base_to = s->rank_from = s->rank_to = first;
}

size_t changepoints_find(const double *values, size_t count, struct changepoint **steps) {
    *steps = NULL;
    size_t found = 0;
    struct state s = {.values = values};
    s.earlier = diag_alloc(calloc(count + 1, sizeof(*s.earlier)));
    for (s.now = 0; s.now < count; s.now++) {
        const size_t seen = s.now + 1 - s.start;
        const size_t from = seen > CHANGEPOINT_WINDOW ? s.now + 1 - CHANGEPOINT_WINDOW : s.start;
        update_ranks(&s, from);
        if (seen < (size_t)2 * CHANGEPOINT_LEAST) {
            continue;
        }
        update_base(&s, from, s.now + 1 - CHANGEPOINT_LEAST);
        struct finding finding = test_quick(&s, from);
        if (finding.direction == 0) {
            finding = test_ranks(&s, from);
        }
        if (finding.direction == 0) {
            continue;
        }
        *steps = diag_alloc(realloc(*steps, (found + 1) * sizeof(**steps)));
        (*steps)[found++] = (struct changepoint){finding.first, s.now, UNKNOWN, UNKNOWN};
        begin_level(&s, finding.first);
    }
    free(s.earlier);
    for (size_t i = 0; i < found; i++) {
        struct changepoint *step = &(*steps)[i];
        const size_t from = i > 0 ? (*steps)[i - 1].first : 0;
        const size_t to = i + 1 < found ? (*steps)[i + 1].first : count;
        step->before = stats_median(&values[from], step->first - from);
        step->after = stats_median(&values[step->first], to - step->first);
    }
    return found;
}

const char *changepoint_method(void) {
    return "change point model (Hawkins, Qiu and Kang 2003; Ross 2015) with the Mann-Whitney "
           "statistic (Hawkins and Deng 2010) and a winsorised mean of the last three commits";
}
