#include "study.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "diag.h"
#include "estimate.h"
#include "op.h"
#include "stats.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/// Probability that any interval of a claim misses its true value; shared out among them
/// (Bonferroni).
#define CLAIM_ERROR 0.05

// What the texts' vague words are taken to mean.

/// "About", "roughly the same": within a quarter.
#define ABOUT_LOW 0.8
#define ABOUT_HIGH 1.25
/// "Barely slower": by at most a tenth.
#define BARELY 1.1
/// "In parallel": nine tenths of what a loop reaches that shares nothing.
#define PARALLEL 0.9
/// "Little": at most a twentieth of the layer.
#define LITTLE 0.05
/// How far an exponent may be from 2 or from 1, relative to it: the texts' law, not another one.
#define LAW 0.1

/// The lengths of the texts' models' first benches, and those of BERT's and GPT-3's contexts.
enum { SEQ = 128, BERT_HEADS = 12, BERT_DIM = 64, BERT_WIDTH = BERT_HEADS * BERT_DIM };
enum { GPT3_HEADS = 96, GPT3_DIM = 128, GPT3_WIDTH = GPT3_HEADS * GPT3_DIM };
/// "GPT-3 Large": Brown et al. 2020 (arXiv:2005.14165), table 2.1.
enum { LARGE_HEADS = 16, LARGE_DIM = 96 };
/// The length at which one head has as many scores as GPT-3's 96 at SEQ: SEQ * sqrt(96).
enum { LONG_SEQ = 1254 };

/// Divisors of both widths, from one head to GPT-3's.
static const size_t heads_list[] = {1, 2, 4, 8, 12, 24, 48, GPT3_HEADS};
static const size_t widths[] = {GPT3_WIDTH, BERT_WIDTH};
static const size_t lengths[] = {128, 256, 512, 1024, 2048};
static const char *const positions[] = {"sinusoid", "learned", "rope", "alibi", "t5"};
static const struct mha_shape layers[] = {
    {1, BERT_HEADS, BERT_HEADS, SEQ, SEQ, BERT_DIM},
    {1, LARGE_HEADS, LARGE_HEADS, SEQ, SEQ, LARGE_DIM},
};
static const char *const layer_names[] = {"BERT-base", "GPT-3 Large"};
/// Where the layer over sdpa is measured too.
static const size_t fused_lengths[] = {128, 512, 2048};

static const enum study_kernel core[] = {STUDY_QK, STUDY_SOFTMAX, STUDY_PV};

static struct mha_shape square(size_t heads, size_t head_dim, size_t seq) {
    return (struct mha_shape){1, heads, heads, seq, seq, head_dim};
}

const char *study_verdict_text(enum study_verdict verdict) {
    static const char *const words[] = {"HOLDS", "DOES NOT HOLD", "INCONCLUSIVE"};
    return words[verdict];
}

// --- problems and rows
// ---------------------------------------------------------------------------------

static struct problem problem_of(const struct study *s, enum study_kernel kernel,
                                 struct mha_shape shape, const char *position) {
    const struct op_driver *driver = op_find(s->kernels[kernel]->op);
    struct problem problem = {
        .op = driver->name, .dtype = element_word(ELEMENT_F32), .shape = shape};
    problem_position_parse(&problem, position);
    driver->normalise(&problem);
    return problem;
}

static struct row *find_row(const struct study *s, enum study_kernel kernel,
                            const struct problem *problem, int threads) {
    for (size_t i = 0; i < s->m->result.count; i++) {
        struct row *row = &s->m->result.rows[i];
        if (row->threads == threads && strcmp(row->kernel, s->kernels[kernel]->name) == 0 &&
            problem_equal(&row->problem, problem)) {
            return row;
        }
    }
    return NULL;
}

/// Adds a row that is not there yet, and its problem.
static void want(struct study *s, enum study_kernel kernel, struct mha_shape shape,
                 const char *position, int threads) {
    if (s->kernels[kernel] == NULL) {
        return;
    }
    const struct problem problem = problem_of(s, kernel, shape, position);
    size_t at = 0;
    while (at < s->problems && !problem_equal(&s->problem[at], &problem)) {
        at++;
    }
    if (at == s->problems) {
        s->problem = diag_alloc(realloc(s->problem, (at + 1) * sizeof(*s->problem)));
        s->problem[s->problems++] = problem;
        s->m->problem = s->problem;
        s->m->problems = s->problems;
    }
    if (find_row(s, kernel, &problem, threads) == NULL) {
        measurement_add(s->m, at, s->kernels[kernel], threads);
    }
}

static void want_attention(struct study *s, struct mha_shape shape, int threads) {
    for (size_t i = 0; i < COUNT(core); i++) {
        want(s, core[i], shape, "none", threads);
    }
    want(s, STUDY_SDPA, shape, "none", threads);
}

void study_plan(struct study *s) {
    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t h = 0; h < COUNT(heads_list); h++) {
            const size_t heads = heads_list[h];
            want_attention(s, square(heads, widths[w] / heads, SEQ), 1);
            if (widths[w] == BERT_WIDTH) {
                want(s, STUDY_UNFUSED, square(heads, widths[w] / heads, SEQ), "none", 1);
            }
        }
    }
    const int counts[] = {1, s->many};
    for (size_t t = 0; t < COUNT(counts); t++) {
        want_attention(s, square(GPT3_HEADS, GPT3_DIM, SEQ), counts[t]);
        want_attention(s, square(1, GPT3_WIDTH, SEQ), counts[t]);
        want_attention(s, square(1, GPT3_DIM, LONG_SEQ), counts[t]);
    }
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct mha_shape shape = square(BERT_HEADS, BERT_DIM, lengths[i]);
        want_attention(s, shape, 1);
        want(s, STUDY_QKV_PROJ, shape, "none", 1);
        want(s, STUDY_OUT_PROJ, shape, "none", 1);
        want(s, STUDY_UNFUSED, shape, "none", 1);
    }
    for (size_t i = 0; i < COUNT(fused_lengths); i++) {
        want(s, STUDY_FUSED, square(BERT_HEADS, BERT_DIM, fused_lengths[i]), "none", 1);
    }
    for (size_t l = 0; l < COUNT(layers); l++) {
        want(s, STUDY_UNFUSED, layers[l], "none", 1);
        for (size_t p = 0; p < COUNT(positions); p++) {
            want(s, STUDY_UNFUSED, layers[l], positions[p], 1);
        }
    }
}

// --- a claim under construction
// ------------------------------------------------------------------------

/// Notes the first thing that is in a claim's way.
static void note(struct study_claim *claim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void note(struct study_claim *claim, const char *format, ...) {
    if (claim->why[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(claim->why, sizeof(claim->why), format, args);
        va_end(args);
    }
}

/// Gets the error of each of a claim's `count` intervals.
static double error_each(size_t count) {
    return CLAIM_ERROR / (double)count;
}

static struct study_claim *add_claim(struct study *s, const char *id) {
    s->claims = diag_alloc(realloc(s->claims, (s->count + 1) * sizeof(*s->claims)));
    struct study_claim *claim = &s->claims[s->count++];
    memset(claim, 0, sizeof(*claim));
    snprintf(claim->id, sizeof(claim->id), "%s", id);
    return claim;
}

static struct study_measure *add_measure(struct study_claim *claim, const char *what,
                                         const char *unit, double value) {
    claim->measures =
        diag_alloc(realloc(claim->measures, (claim->count + 1) * sizeof(*claim->measures)));
    struct study_measure *measure = &claim->measures[claim->count++];
    *measure = (struct study_measure){
        .unit = unit, .value = value, .low = UNKNOWN, .high = UNKNOWN, .judged = false};
    snprintf(measure->what, sizeof(measure->what), "%s", what);
    return measure;
}

/// Adds an estimate with its interval. `error` is that of this interval alone.
static struct study_measure *add_estimate(struct study_claim *claim, const char *what,
                                          const char *unit, struct estimate e, double error) {
    struct study_measure *measure = add_measure(claim, what, unit, e.value);
    const struct estimate_interval interval = estimate_interval(&e, error);
    measure->low = interval.low;
    measure->high = interval.high;
    return measure;
}

/// Adds a share likewise.
static struct study_measure *add_share(struct study_claim *claim, const char *what,
                                       struct estimate e, double error) {
    struct study_measure *measure = add_measure(claim, what, "", e.value);
    const struct estimate_interval interval = estimate_interval_share(&e, error);
    measure->low = interval.low;
    measure->high = interval.high;
    return measure;
}

/// Lets the verdict rest on a measure.
static void judge(struct study_measure *measure, double least, double most) {
    measure->judged = true;
    measure->least = least;
    measure->most = most;
}

/// Draws the verdict from the judged measures: holds when every interval lies within its limits,
/// fails when one lies wholly outside.
static void conclude(struct study_claim *claim) {
    const struct study_measure *outside = NULL, *across = NULL, *blank = NULL;
    size_t judged = 0;
    for (size_t i = 0; i < claim->count; i++) {
        const struct study_measure *m = &claim->measures[i];
        if (!m->judged) {
            continue;
        }
        judged++;
        if (!(isfinite(m->low) && isfinite(m->high))) {
            blank = blank ? blank : m;
        } else if (m->high < m->least || m->low > m->most) {
            // The one that lies farthest out tells most.
            const bool farther = !outside || fabs(log(m->value)) > fabs(log(outside->value));
            outside = farther ? m : outside;
        } else if (m->low < m->least || m->high > m->most) {
            across = across ? across : m;
        }
    }
    if (outside) {
        claim->verdict = STUDY_FAILS;
        snprintf(claim->why, sizeof(claim->why), "%s: %.3g (%.3g to %.3g)", outside->what,
                 outside->value, outside->low, outside->high);
    } else if (blank || judged == 0) {
        claim->verdict = STUDY_INCONCLUSIVE;
        note(claim, "%s: one launch tells no spread", blank ? blank->what : "nothing measured");
    } else if (across) {
        claim->verdict = STUDY_INCONCLUSIVE;
        snprintf(claim->why, sizeof(claim->why), "%s: %.3g to %.3g reaches across the limit",
                 across->what, across->low, across->high);
    } else {
        claim->verdict = STUDY_HOLDS;
        snprintf(claim->why, sizeof(claim->why), "all %zu intervals lie within it", judged);
    }
}

/// Gets a row that has a time; otherwise notes why it has none.
static const struct row *timed_row(const struct study *s, struct study_claim *claim,
                                   enum study_kernel kernel, struct mha_shape shape,
                                   const char *position, int threads) {
    if (s->kernels[kernel] == NULL) {
        note(claim, "there is no kernel for it");
        return NULL;
    }
    const struct problem problem = problem_of(s, kernel, shape, position);
    const struct row *row = find_row(s, kernel, &problem, threads);
    if (row == NULL || row_has_time(row)) {
        return row;
    }
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    note(claim, "%.250s: %s%s%.100s", name, verdict_text(row->verdict), row->reason ? ": " : "",
         row->reason ? row->reason : "");
    return NULL;
}

static struct estimate time_of(const struct study *s, struct study_claim *claim,
                               enum study_kernel kernel, struct mha_shape shape,
                               const char *position, int threads) {
    const struct row *row = timed_row(s, claim, kernel, shape, position, threads);
    return row ? estimate_of_row(row) : estimate_unknown();
}

/// What is measured of attention: its three steps, the fused kernel, or the whole layer.
enum whole { STEPS, FUSED, LAYER };
static const char *const whole_names[] = {"qk + softmax + pv", "sdpa", "the whole layer"};

static struct estimate whole_time(const struct study *s, struct study_claim *claim,
                                  enum whole whole, struct mha_shape shape, int threads) {
    if (whole != STEPS) {
        return time_of(s, claim, whole == FUSED ? STUDY_SDPA : STUDY_UNFUSED, shape, "none",
                       threads);
    }
    struct estimate sum = time_of(s, claim, core[0], shape, "none", threads);
    for (size_t i = 1; i < COUNT(core); i++) {
        sum = estimate_sum(sum, time_of(s, claim, core[i], shape, "none", threads));
    }
    return sum;
}

// --- (a) many narrow heads against one wide one
// ----------------------------------------------------------

static void read_heads(struct study *s, size_t width, enum whole whole, const char *id) {
    struct study_claim *claim = add_claim(s, id);
    const double error = error_each(COUNT(heads_list) - 1);
    char what[100];
    snprintf(claim->claim, sizeof(claim->claim),
             "h heads of %zu/h cost about what one head of %zu costs (%s)", width, width,
             whole_names[whole]);
    snprintf(claim->criterion, sizeof(claim->criterion),
             "about: the times' ratio to one head's lies within %.2f to %.2f for every h",
             ABOUT_LOW, ABOUT_HIGH);
    const struct mha_shape wide = square(1, width, SEQ);
    const struct estimate one = whole_time(s, claim, whole, wide, 1);
    snprintf(what, sizeof(what), "one head of %zu, %d tokens, 1 thread", width, SEQ);
    add_measure(claim, what, "ms", one.value / 1e6);
    for (size_t h = 1; h < COUNT(heads_list); h++) {
        const size_t heads = heads_list[h];
        const struct mha_shape shape = square(heads, width / heads, SEQ);
        const struct estimate time = whole_time(s, claim, whole, shape, 1);
        snprintf(what, sizeof(what), "%zu heads of %zu, times as long", heads, width / heads);
        judge(add_estimate(claim, what, "", estimate_ratio(time, one), error), ABOUT_LOW,
              ABOUT_HIGH);
    }
    for (size_t i = 0; whole == STEPS && i < COUNT(core); i++) {
        // What grows: the products have the same work in any number of heads.
        const struct mha_shape narrow = square(GPT3_HEADS, width / GPT3_HEADS, SEQ);
        snprintf(what, sizeof(what), "%s alone, %d heads, times as long",
                 s->kernels[core[i]] ? s->kernels[core[i]]->op : "", GPT3_HEADS);
        add_estimate(claim, what, "",
                     estimate_ratio(time_of(s, claim, core[i], narrow, "none", 1),
                                    time_of(s, claim, core[i], wide, "none", 1)),
                     error);
    }
    conclude(claim);
}

// --- (b) 96 small operations against a large one
// -----------------------------------------------------------

static void read_small(struct study *s, struct mha_shape large, const char *large_name,
                       const char *id) {
    struct study_claim *claim = add_claim(s, id);
    const struct mha_shape small = square(GPT3_HEADS, GPT3_DIM, SEQ);
    const int counts[] = {1, s->many};
    const size_t used = s->many > 1 ? 2 : 1;
    snprintf(claim->claim, sizeof(claim->claim),
             "%d small attention operations are barely slower than a large one, %s", GPT3_HEADS,
             large_name);
    snprintf(claim->criterion, sizeof(claim->criterion),
             "barely slower: at most %.2f times as long, for steps and fused, on every number of "
             "threads",
             BARELY);
    for (size_t t = 0; t < used; t++) {
        for (int whole = STEPS; whole <= FUSED; whole++) {
            char what[100];
            const struct estimate few = whole_time(s, claim, (enum whole)whole, large, counts[t]);
            const struct estimate many = whole_time(s, claim, (enum whole)whole, small, counts[t]);
            snprintf(what, sizeof(what), "%s, %d thread%s, times as long", whole_names[whole],
                     counts[t], counts[t] > 1 ? "s" : "");
            judge(add_estimate(claim, what, "", estimate_ratio(many, few), error_each(2 * used)), 0,
                  BARELY);
        }
    }
    conclude(claim);
}

// --- (c) heads are independent
// -------------------------------------------------------------------------------

/// Gets what the FMA loop of the kernels' ISA reaches on so many threads.
static struct estimate fma_rate(const struct study *s, const char *isa, int threads) {
    for (size_t i = 0; i < s->m->ceilings.count; i++) {
        const struct ceiling *c = &s->m->ceilings.items[i];
        if (strcmp(c->kind, "fma") == 0 && strcmp(c->isa, isa) == 0 && c->threads == threads) {
            return estimate_of_median(c->value, c->spread, c->samples);
        }
    }
    return estimate_unknown();
}

static void read_threads(struct study *s) {
    struct study_claim *claim = add_claim(s, "c1");
    const struct mha_shape shape = square(GPT3_HEADS, GPT3_DIM, SEQ);
    char what[100];
    snprintf(claim->claim, sizeof(claim->claim),
             "heads are independent: %d of them run in parallel on all threads", GPT3_HEADS);
    snprintf(claim->criterion, sizeof(claim->criterion),
             "in parallel: the speed-up is at least %.2f of that of a loop of multiply-adds, which "
             "shares nothing",
             PARALLEL);
    if (s->many < 2) {
        note(claim, "one thread only");
        conclude(claim);
        return;
    }
    for (int whole = STEPS; whole <= FUSED; whole++) {
        const enum study_kernel kernel = whole == FUSED ? STUDY_SDPA : STUDY_QK;
        const char *isa = s->kernels[kernel] ? s->kernels[kernel]->isa : "";
        const struct estimate one = whole_time(s, claim, (enum whole)whole, shape, 1);
        const struct estimate all = whole_time(s, claim, (enum whole)whole, shape, s->many);
        const struct estimate loop = estimate_ratio(fma_rate(s, isa, s->many), fma_rate(s, isa, 1));
        if (!isfinite(loop.value)) {
            note(claim, "the loop of multiply-adds was not measured on 1 and %d threads", s->many);
        }
        snprintf(what, sizeof(what), "%s, %d threads, speed-up", whole_names[whole], s->many);
        add_estimate(claim, what, "", estimate_ratio(one, all), error_each(2));
        snprintf(what, sizeof(what), "the loop of multiply-adds, %d threads, speed-up", s->many);
        add_estimate(claim, what, "", loop, error_each(2));
        snprintf(what, sizeof(what), "%s, of the loop's speed-up", whole_names[whole]);
        judge(add_estimate(claim, what, "", estimate_ratio(estimate_ratio(one, all), loop),
                           error_each(2)),
              PARALLEL, (double)INFINITY);
    }
    conclude(claim);
}

// --- (d) the length of the sequence
// ------------------------------------------------------------------------------

static void read_exponent(struct study *s, const char *id, const char *text, double law,
                          const enum study_kernel *kernels, size_t count) {
    struct study_claim *claim = add_claim(s, id);
    snprintf(claim->claim, sizeof(claim->claim), "%s", text);
    snprintf(claim->criterion, sizeof(claim->criterion),
             "the exponent fitted over %zu to %zu tokens, %d heads of %d, 1 thread, lies within "
             "%.2f to %.2f",
             lengths[0], lengths[COUNT(lengths) - 1], BERT_HEADS, BERT_DIM, law * (1 - LAW),
             law * (1 + LAW));
    for (size_t k = 0; k < count; k++) {
        double x[COUNT(lengths)];
        struct estimate y[COUNT(lengths)];
        char what[100];
        for (size_t i = 0; i < COUNT(lengths); i++) {
            x[i] = (double)lengths[i];
            y[i] =
                time_of(s, claim, kernels[k], square(BERT_HEADS, BERT_DIM, lengths[i]), "none", 1);
        }
        const struct estimate e = estimate_exponent(x, y, COUNT(lengths));
        const struct estimate_interval interval = estimate_interval_linear(&e, error_each(count));
        snprintf(what, sizeof(what), "%s, exponent",
                 s->kernels[kernels[k]] ? s->kernels[kernels[k]]->op : "");
        struct study_measure *measure = add_measure(claim, what, "", e.value);
        measure->low = interval.low;
        measure->high = interval.high;
        judge(measure, law * (1 - LAW), law * (1 + LAW));
    }
    conclude(claim);
}

/// The time of the steps of some ops in a layer's row.
static double step_ns(const struct row *row, const char *const *ops) {
    double ns = 0;
    for (size_t i = 0; i < row->steps; i++) {
        for (size_t o = 0; ops[o]; o++) {
            ns += strcmp(row->step[i].op, ops[o]) == 0 ? row->step[i].ns : 0;
        }
    }
    return ns;
}

static double all_ns(const struct row *row) {
    double ns = 0;
    for (size_t i = 0; i < row->steps; i++) {
        ns += row->step[i].ns;
    }
    return ns;
}

static const char *const projections[] = {"qkv_proj", "out_proj", NULL};
static const char *const softmax_op[] = {"softmax", NULL};
static const char *const qk_op[] = {"qk", NULL};
static const char *const pv_op[] = {"pv", NULL};
static const char *const moves[] = {"split", "concat", NULL};
static const char *const position_ops[] = {"sinusoid", "rope", "bias", NULL};

/// Gets the share of some steps in a layer.
static struct estimate steps_share(const struct row *row, const char *const *ops) {
    const double part = step_ns(row, ops);
    return estimate_share(part, all_ns(row) - part, estimate_launch_spread(row), row->launches);
}

/// Where a quantity passes through a limit, between measured lengths, log-log; NAN when it does
/// not.
static double crossing(const double *value, double limit) {
    for (size_t i = 0; i + 1 < COUNT(lengths); i++) {
        const double a = log(value[i] / limit), b = log(value[i + 1] / limit);
        if (a * b <= 0 && fabs(a - b) > 0) {
            const double from = log((double)lengths[i]), to = log((double)lengths[i + 1]);
            return exp(from + (to - from) * a / (a - b));
        }
    }
    return UNKNOWN;
}

/// Adds where that is, if anywhere.
static void add_crossing(struct study_claim *claim, const char *what, const double *value,
                         double limit) {
    const double at = crossing(value, limit);
    if (isfinite(at)) {
        add_measure(claim, what, "tokens", at);
    }
}

static void read_projections(struct study *s) {
    struct study_claim *claim = add_claim(s, "d3");
    double ratio[COUNT(lengths)];
    char what[100];
    snprintf(claim->claim, sizeof(claim->claim),
             "the projections dominate a layer over short sequences, attention over long ones");
    snprintf(claim->criterion, sizeof(claim->criterion),
             "dominate: the projections take more than half of the steps' time at %zu tokens, and "
             "less than half at %zu (BERT-base, 1 thread)",
             lengths[0], lengths[COUNT(lengths) - 1]);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct row *row =
            timed_row(s, claim, STUDY_UNFUSED, square(BERT_HEADS, BERT_DIM, lengths[i]), "none", 1);
        ratio[i] = UNKNOWN;
        if (row != NULL && row->steps > 0) {
            const struct estimate share = steps_share(row, projections);
            ratio[i] = share.value;
            snprintf(what, sizeof(what), "%zu tokens, the projections' share", lengths[i]);
            struct study_measure *m = add_share(claim, what, share, error_each(2));
            if (i == 0) {
                judge(m, 0.5, 1);
            } else if (i + 1 == COUNT(lengths)) {
                judge(m, 0, 0.5);
            }
        }
    }
    add_crossing(claim, "the projections take half of the time at", ratio, 0.5);
    // Where their operations are as many: 8 n d^2 of the projections, 4 n^2 d of attention.
    add_measure(claim, "they have half of the operations at", "tokens", 2.0 * BERT_WIDTH);
    conclude(claim);
}

static void read_softmax(struct study *s) {
    struct study_claim *claim = add_claim(s, "d4");
    double ratio[COUNT(lengths)];
    char what[100];
    snprintf(claim->claim, sizeof(claim->claim), "over long sequences softmax dominates attention");
    snprintf(claim->criterion, sizeof(claim->criterion),
             "dominates: it takes longer than qk and than pv at %zu tokens (BERT-base's layer, 1 "
             "thread)",
             lengths[COUNT(lengths) - 1]);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        const struct row *row =
            timed_row(s, claim, STUDY_UNFUSED, square(BERT_HEADS, BERT_DIM, lengths[i]), "none", 1);
        ratio[i] = UNKNOWN;
        if (row != NULL && row->steps > 0) {
            const double other = fmax(step_ns(row, qk_op), step_ns(row, pv_op));
            const struct estimate e = estimate_step_ratio(
                step_ns(row, softmax_op), other, estimate_launch_spread(row), row->launches);
            ratio[i] = e.value;
            snprintf(what, sizeof(what), "%zu tokens, times the longer of qk and pv", lengths[i]);
            struct study_measure *m = add_estimate(claim, what, "", e, CLAIM_ERROR);
            if (i + 1 == COUNT(lengths)) {
                judge(m, 1, (double)INFINITY);
            }
        }
    }
    add_crossing(claim, "softmax takes as long as the longer of them at", ratio, 1);
    conclude(claim);
}

// --- (e) position encodings, (f) splitting and concatenating
// ------------------------------------------------

static void read_positions(struct study *s, size_t layer, const char *id) {
    struct study_claim *claim = add_claim(s, id);
    const double error = error_each(COUNT(positions));
    char what[100];
    snprintf(claim->claim, sizeof(claim->claim),
             "a position encoding costs little beside the layer (%s, %d tokens)",
             layer_names[layer], SEQ);
    snprintf(claim->criterion, sizeof(claim->criterion),
             "little: its steps take at most %.2f of the layer's, for every encoding (unfused, 1 "
             "thread)",
             LITTLE);
    const struct estimate none = time_of(s, claim, STUDY_UNFUSED, layers[layer], "none", 1);
    add_measure(claim, "without one", "ms", none.value / 1e6);
    for (size_t p = 0; p < COUNT(positions); p++) {
        const struct row *row = timed_row(s, claim, STUDY_UNFUSED, layers[layer], positions[p], 1);
        const bool has = row != NULL && row->steps > 0;
        snprintf(what, sizeof(what), "%s, share of the layer", positions[p]);
        judge(add_share(claim, what, has ? steps_share(row, position_ops) : estimate_unknown(),
                        error),
              0, LITTLE);
        snprintf(what, sizeof(what), "%s, the whole layer, times as long as without", positions[p]);
        add_estimate(claim, what, "",
                     estimate_ratio(row ? estimate_of_row(row) : estimate_unknown(), none), error);
    }
    conclude(claim);
}

static void add_moves(struct study *s, struct study_claim *claim, enum study_kernel kernel,
                      struct mha_shape shape, const char *layer, double error) {
    const struct row *row = timed_row(s, claim, kernel, shape, "none", 1);
    const bool has = row != NULL && row->steps > 0;
    char what[100];
    snprintf(what, sizeof(what), "%s, %zu tokens, %s: share", layer, shape.seq_q,
             kernel == STUDY_FUSED ? "over sdpa" : "unfused");
    judge(add_share(claim, what, has ? steps_share(row, moves) : estimate_unknown(), error), 0,
          LITTLE);
}

static void read_moves(struct study *s) {
    struct study_claim *claim = add_claim(s, "f1");
    const double error = error_each(COUNT(lengths) + COUNT(fused_lengths) + COUNT(layers) - 1);
    snprintf(claim->claim, sizeof(claim->claim),
             "splitting into heads and concatenating them cost little beside the layer");
    snprintf(claim->criterion, sizeof(claim->criterion),
             "little: split and concat take at most %.2f of the layer's steps (1 thread)", LITTLE);
    for (size_t i = 0; i < COUNT(lengths); i++) {
        add_moves(s, claim, STUDY_UNFUSED, square(BERT_HEADS, BERT_DIM, lengths[i]), layer_names[0],
                  error);
    }
    for (size_t i = 0; i < COUNT(fused_lengths); i++) {
        add_moves(s, claim, STUDY_FUSED, square(BERT_HEADS, BERT_DIM, fused_lengths[i]),
                  layer_names[0], error);
    }
    for (size_t l = 1; l < COUNT(layers); l++) {
        add_moves(s, claim, STUDY_UNFUSED, layers[l], layer_names[l], error);
    }
    conclude(claim);
}

void study_read(struct study *s) {
    static const enum study_kernel quadratic[] = {STUDY_QK, STUDY_SOFTMAX, STUDY_PV, STUDY_SDPA};
    static const enum study_kernel linear[] = {STUDY_QKV_PROJ, STUDY_OUT_PROJ};
    read_heads(s, GPT3_WIDTH, STEPS, "a1");
    read_heads(s, GPT3_WIDTH, FUSED, "a2");
    read_heads(s, BERT_WIDTH, STEPS, "a3");
    read_heads(s, BERT_WIDTH, FUSED, "a4");
    read_heads(s, BERT_WIDTH, LAYER, "a5");
    read_small(s, square(1, GPT3_WIDTH, SEQ), "one head as wide as all of them", "b1");
    read_small(s, square(1, GPT3_DIM, LONG_SEQ), "one head over as many scores", "b2");
    read_threads(s);
    read_exponent(s, "d1", "attention's cost grows with the square of the sequence's length", 2,
                  quadratic, COUNT(quadratic));
    read_exponent(s, "d2", "the projections' cost grows in proportion to the sequence's length", 1,
                  linear, COUNT(linear));
    read_projections(s);
    read_softmax(s);
    read_positions(s, 0, "e1");
    read_positions(s, 1, "e2");
    read_moves(s);
}

void study_free(struct study *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->claims[i].measures);
    }
    free(s->claims);
    free(s->problem);
    s->claims = NULL;
    s->problem = NULL;
    s->count = s->problems = 0;
}
