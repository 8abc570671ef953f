#include "oracle.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "team.h"

/// Above this many operations the oracle holds a sample of the rows.
#define FULL_FLOPS 1e9

/// Below this number of operations one thread makes it.
#define SMALL_FLOPS 1e6

/// Rows per plane of a sample: the first, the last, those around tile and block edges, and random
/// ones.
enum { SAMPLE_RANDOM = 64, SAMPLE_MAX = SAMPLE_RANDOM + 16 };

/// Rows at which tiles and blocks of the usual sizes begin and end.
static const size_t edge_rows[] = {0, 1, 5, 6, 7, 8, 11, 12, 13, 15, 16, 31, 32, 63, 64};

struct make_job {
    struct oracle *oracle;
    const struct tensor *tensors;
};

static void make_row(void *context, size_t i, int thread) {
    const struct make_job *job = context;
    const struct oracle *o = job->oracle;
    (void)thread;
    o->driver->oracle_row(o->problem, job->tensors, o->planes[i], o->rows[i], o->want + i * o->cols,
                          o->bound + i * o->cols);
}

static int compare_sizes(const void *a, const void *b) {
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/// Picks the rows of one plane's sample, sorted and without repeats. Returns their number.
static size_t sample_rows(size_t rows, uint64_t seed, size_t plane, size_t picked[SAMPLE_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < sizeof(edge_rows) / sizeof(edge_rows[0]); i++) {
        if (edge_rows[i] < rows) {
            picked[count++] = edge_rows[i];
        }
    }
    picked[count++] = rows - 1;
    for (size_t i = 0; i < SAMPLE_RANDOM; i++) {
        picked[count++] = data_mix(seed + plane, i) % rows;
    }
    qsort(picked, count, sizeof(picked[0]), compare_sizes);
    size_t unique = 0;
    for (size_t i = 0; i < count; i++) {
        if (unique == 0 || picked[unique - 1] != picked[i]) {
            picked[unique++] = picked[i];
        }
    }
    return unique;
}

bool oracle_make(struct oracle *oracle, const struct op_driver *driver,
                 const struct problem *problem, const struct tensor *tensors,
                 const struct data_class *data, uint64_t seed, int threads) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    const size_t n = driver->tensors(problem, shapes);
    const struct tensor_shape *out = &shapes[n - 1];
    const bool full =
        driver->flops(problem) <= FULL_FLOPS || out->rows <= SAMPLE_MAX || driver->ceiling;
    const size_t per_plane = full ? out->rows : SAMPLE_MAX;
    memset(oracle, 0, sizeof(*oracle));
    oracle->driver = driver;
    oracle->problem = problem;
    oracle->special = data->special;
    oracle->cols = out->cols;
    const size_t most = out->planes * per_plane;
    oracle->planes = calloc(most + 1, sizeof(*oracle->planes));
    oracle->rows = calloc(most + 1, sizeof(*oracle->rows));
    oracle->want = calloc(most * out->cols + 1, sizeof(*oracle->want));
    oracle->bound = calloc(most * out->cols + 1, sizeof(*oracle->bound));
    if (!oracle->planes || !oracle->rows || !oracle->want || !oracle->bound) {
        oracle_free(oracle);
        return false;
    }
    for (size_t p = 0; p < out->planes && out->rows > 0; p++) {
        size_t picked[SAMPLE_MAX];
        const size_t count = full ? out->rows : sample_rows(out->rows, seed, p, picked);
        for (size_t i = 0; i < count; i++) {
            oracle->planes[oracle->count] = p;
            oracle->rows[oracle->count++] = full ? i : picked[i];
        }
    }
    oracle->checked_share =
        oracle->count > 0 ? (double)oracle->count / ((double)out->planes * (double)out->rows) : 1;
    if (driver->oracle_rows) {
        const bool good = driver->oracle_rows(problem, tensors, oracle->count, oracle->planes,
                                              oracle->rows, oracle->want, oracle->bound, threads);
        if (!good) {
            oracle_free(oracle);
        }
        return good;
    }
    struct make_job job = {oracle, tensors};
    // Waking a team takes longer than a small problem does.
    const bool small = driver->flops(problem) + (double)(most * out->cols) < SMALL_FLOPS;
    team_for(small ? 1 : threads, out->cols > 0 ? oracle->count : 0, make_row, &job);
    return true;
}

void oracle_free(struct oracle *oracle) {
    free(oracle->planes);
    free(oracle->rows);
    free(oracle->want);
    free(oracle->bound);
    memset(oracle, 0, sizeof(*oracle));
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// Unit in the last place of a float near `want`. Below the smallest normal it is 2^-126: what
/// flushing may cost is one unit, not the eight million of the denormals.
static double ulp_of(double want) {
    if (!(fabs(want) >= (double)FLT_MIN)) {
        return (double)FLT_MIN;
    }
    // The power of two in `want`, by its exponent field; a call of ldexp() would take longer than
    // all else that is done for an element.
    uint64_t bits;
    memcpy(&bits, &want, sizeof(bits));
    bits &= UINT64_C(0x7ff) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return power * 0x1p-23;
}

/// What the elements seen so far would have let through.
struct interval {
    bool zeros;        ///< Zero is within every bound.
    double low, high;  ///< A constant within [low, high] is within every bound.
    size_t elements;
};

struct judged {
    bool right;
    double error;  ///< NAN when a class differs.
};

static struct judged compare(enum compare_how how, float got, double want, double bound) {
    const double value = (double)got;
    if (how == COMPARE_BITS) {
        const bool same = bits_of(got) == bits_of((float)want);
        return (struct judged){same, same ? 0 : fabs(value - want)};
    }
    if (bits_of(got) == BUFFER_POISON_BITS) {
        return (struct judged){false, UNKNOWN};  // also where NaN is right: nobody wrote it
    }
    if (isnan(want) || isnan(value)) {
        return (struct judged){isnan(want) && isnan(value),
                               isnan(want) && isnan(value) ? 0 : UNKNOWN};
    }
    // A result beyond the largest float is rightly infinite.
    const bool overflows = fabs(want) + bound > (double)FLT_MAX;
    if (isinf(want) || isinf(value)) {
        const bool same = isinf(value) && (isinf(want) || overflows) && (want > 0) == (value > 0);
        return (struct judged){same, same ? 0 : UNKNOWN};
    }
    const double error = fabs(value - want);
    return (struct judged){error <= bound, error};
}

/// Writes which lanes of the row around `col` are wrong, modulo 16: where a vector kernel goes
/// wrong.
static void describe(const struct oracle *o, const struct tensor *out, size_t i, size_t col,
                     struct judgement *j) {
    const float *got = tensor_row(out, o->planes[i], o->rows[i]);
    const double *want = o->want + i * o->cols;
    const double *bound = o->bound + i * o->cols;
    char lanes[17] = "................";
    size_t wrong = 0;
    for (size_t c = 0; c < o->cols; c++) {
        if (!compare(o->driver->compare, got[c], want[c], bound[c]).right) {
            lanes[c % 16] = 'x';
            wrong++;
        }
    }
    const bool untouched = bits_of(got[col]) == BUFFER_POISON_BITS;
    char value[32];
    snprintf(value, sizeof(value), "%.9g", (double)got[col]);
    snprintf(j->reason, sizeof(j->reason),
             "%s[plane %zu, row %zu, col %zu]: expected %.9g +- %.3g, got %s (0x%08x); "
             "%zu of %zu wrong in this row, lanes mod 16: %s",
             out->shape.name, o->planes[i], o->rows[i], col, want[col], bound[col],
             untouched ? "nothing written" : value, bits_of(got[col]), wrong, o->cols, lanes);
}

struct judge_job {
    const struct oracle *oracle;
    const struct tensor *output;
    struct judgement *judgements;  ///< [threads]
    struct interval *intervals;    ///< [threads]
};

static void judge_row(void *context, size_t i, int thread) {
    const struct judge_job *job = context;
    const struct oracle *o = job->oracle;
    struct judgement *j = &job->judgements[thread];
    struct interval *seen = &job->intervals[thread];
    const float *got = tensor_row(job->output, o->planes[i], o->rows[i]);
    for (size_t c = 0; c < o->cols; c++) {
        const double want = o->want[i * o->cols + c], bound = o->bound[i * o->cols + c];
        const struct judged e = compare(o->driver->compare, got[c], want, bound);
        seen->elements++;
        if (isfinite(want)) {
            seen->zeros = seen->zeros && fabs(want) <= bound;
            seen->low = want - bound > seen->low ? want - bound : seen->low;
            seen->high = want + bound < seen->high ? want + bound : seen->high;
        } else {
            seen->zeros = false;
            seen->low = HUGE_VAL;
        }
        if (!e.right) {
            if (j->verdict != VERDICT_FAILED) {
                j->verdict = VERDICT_FAILED;
                j->plane = o->planes[i];
                j->row = o->rows[i];
                j->col = c;
                describe(o, job->output, i, c, j);
            }
        }
        if (e.error > 0) {
            const double share = bound > 0 ? e.error / bound : HUGE_VAL;
            const double ulp = e.error / ulp_of(want);
            j->max_ulp = ulp > j->max_ulp ? ulp : j->max_ulp;
            if (share > j->bound_share) {
                j->bound_share = share;
                if (j->verdict != VERDICT_FAILED) {
                    j->plane = o->planes[i];
                    j->row = o->rows[i];
                    j->col = c;
                }
            }
        }
    }
}

/// Looks at rows that the oracle does not hold: written, and finite unless the data is special.
static void judge_unsampled(void *context, size_t index, int thread) {
    const struct judge_job *job = context;
    const struct tensor *out = job->output;
    struct judgement *j = &job->judgements[thread];
    const size_t plane = index / out->shape.rows, row = index % out->shape.rows;
    const float *got = tensor_row(out, plane, row);
    for (size_t c = 0; c < out->shape.cols; c++) {
        const bool untouched = bits_of(got[c]) == BUFFER_POISON_BITS;
        if (j->verdict != VERDICT_FAILED &&
            (untouched || (!job->oracle->special && !isfinite(got[c])))) {
            j->verdict = VERDICT_FAILED;
            j->plane = plane;
            j->row = row;
            j->col = c;
            snprintf(j->reason, sizeof(j->reason), "%s[plane %zu, row %zu, col %zu]: %s",
                     out->shape.name, plane, row, c, untouched ? "nothing written" : "not finite");
        }
    }
}

void oracle_judge(const struct oracle *oracle, const struct tensor *output, int threads,
                  struct judgement *judgement) {
    memset(judgement, 0, sizeof(*judgement));
    judgement->verdict = VERDICT_PASSED;
    struct judgement *judgements = calloc((size_t)threads, sizeof(*judgements));
    struct interval *intervals = calloc((size_t)threads, sizeof(*intervals));
    if (!judgements || !intervals) {
        free(judgements);
        free(intervals);
        judgement->verdict = VERDICT_FAILED;
        snprintf(judgement->reason, sizeof(judgement->reason), "no memory to judge");
        return;
    }
    for (int t = 0; t < threads; t++) {
        judgements[t].verdict = VERDICT_PASSED;
        intervals[t] = (struct interval){true, -HUGE_VAL, HUGE_VAL, 0};
    }
    struct judge_job job = {oracle, output, judgements, intervals};
    team_for(threads, oracle->count, judge_row, &job);
    if (oracle->checked_share < 1) {
        team_for(threads, output->shape.planes * output->shape.rows, judge_unsampled, &job);
    }
    struct interval all = {true, -HUGE_VAL, HUGE_VAL, 0};
    for (int t = 0; t < threads; t++) {
        const struct judgement *j = &judgements[t];
        const double ulp = fmax(judgement->max_ulp, j->max_ulp);
        const double share = fmax(judgement->bound_share, j->bound_share);
        const bool worse =
            judgement->verdict == VERDICT_PASSED &&
            (j->verdict == VERDICT_FAILED || j->bound_share > judgement->bound_share);
        if (worse) {
            *judgement = *j;
        }
        judgement->max_ulp = ulp;
        judgement->bound_share = share;
        all.zeros = all.zeros && intervals[t].zeros;
        all.low = fmax(all.low, intervals[t].low);
        all.high = fmin(all.high, intervals[t].high);
        all.elements += intervals[t].elements;
    }
    free(judgements);
    free(intervals);
    const bool trivial =
        all.elements == 0 || (oracle->driver->trivial && oracle->driver->trivial(oracle->problem));
    const bool blind = all.zeros || (all.elements > 1 && all.low <= all.high);
    if (judgement->verdict == VERDICT_PASSED && blind && !trivial) {
        judgement->verdict = VERDICT_MISTRUSTED;
        snprintf(judgement->reason, sizeof(judgement->reason),
                 "%s would have passed on this data too",
                 all.zeros ? "an output of zeros" : "a constant output");
    }
}
