/// Times to estimates, estimates to verdicts: over made-up rows, whose truth is known.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "diag.h"
#include "estimate.h"
#include "op.h"
#include "stats.h"
#include "study.h"

enum { LAUNCHES = 5, SAMPLES = 3 };

// --- noise
// ---------------------------------------------------------------------------------------------

static uint64_t drawn;

static double uniform(void) {
    return ((double)(data_mix(7, drawn++) >> 11) + 0.5) * 0x1p-53;
}

/// Box and Muller 1958.
static double normal(void) {
    const double radius = sqrt(-2 * log(uniform()));
    return radius * cos(2 * acos(-1) * uniform());
}

/// Gives a row the times of some launches around `ns`, launches `spread` apart from each other.
static void set_times(struct row *row, double ns, double spread, size_t launches) {
    row->verdict = VERDICT_PASSED;
    row->launches = launches;
    row->samples = diag_alloc(calloc(launches + 1, sizeof(*row->samples)));
    for (size_t l = 0; l < launches; l++) {
        const double launch = ns * exp(spread * normal());
        row->samples[l].count = SAMPLES;
        row->samples[l].ns = diag_alloc(calloc(SAMPLES, sizeof(double)));
        for (size_t i = 0; i < SAMPLES; i++) {
            row->samples[l].ns[i] = launch * (1 + 0.001 * (double)i);
        }
    }
}

static struct estimate row_estimate(double ns, double spread, size_t launches) {
    static char name[] = "qk_f32_avx2_k", isa[] = "avx2", tag[] = "k";
    struct row row = {
        .problem = {.op = "qk", .dtype = "f32"}, .kernel = name, .isa = isa, .tag = tag};
    struct result result = {.count = 1, .rows = &row};
    set_times(&row, ns, spread, launches);
    results_derive(&result);
    const struct estimate e = estimate_of_row(&row);
    for (size_t l = 0; l < launches; l++) {
        free(row.samples[l].ns);
    }
    free(row.samples);
    return e;
}

// --- estimates
// -----------------------------------------------------------------------------------------

static bool holds(struct estimate_interval interval, double truth) {
    return interval.low <= truth && truth <= interval.high;
}

/// An interval of 95 % must hold the truth in at least 95 of 100 experiments; of 2000, chance
/// leaves no more than 5 standard deviations below.
static void intervals_hold_the_truth(void **state) {
    (void)state;
    enum { EXPERIMENTS = 2000, SUM_OF = 3 };
    const double least = 0.95 - 5 * sqrt(0.95 * 0.05 / EXPERIMENTS);
    size_t one = 0, ratio = 0, exponent = 0;
    for (size_t i = 0; i < EXPERIMENTS; i++) {
        const struct estimate a = row_estimate(1000, 0.03, LAUNCHES);
        struct estimate sum = row_estimate(100, 0.05, LAUNCHES);
        for (size_t k = 1; k < SUM_OF; k++) {
            sum = estimate_sum(sum, row_estimate(100, 0.02, LAUNCHES));
        }
        const struct estimate r = estimate_ratio(a, sum);
        one += holds(estimate_interval(&a, 0.05), 1001);
        ratio += holds(estimate_interval(&r, 0.05), 10.0 / 3);
        double x[LAUNCHES];
        struct estimate y[LAUNCHES];
        for (size_t k = 0; k < LAUNCHES; k++) {
            x[k] = (double)((size_t)128 << k);
            y[k] = row_estimate(3 * pow(x[k], 1.9), 0.05, LAUNCHES);
        }
        const struct estimate p = estimate_exponent(x, y, LAUNCHES);
        exponent += holds(estimate_interval_linear(&p, 0.05), 1.9);
    }
    assert_true((double)one / EXPERIMENTS >= least);
    assert_true((double)ratio / EXPERIMENTS >= least);
    assert_true((double)exponent / EXPERIMENTS >= least);
    // And they are no wider than to be of use: Student's of so few launches, twice at most.
    const struct estimate a = row_estimate(1000, 0.01, LAUNCHES);
    const struct estimate_interval interval = estimate_interval(&a, 0.05);
    assert_true(interval.high / interval.low < exp(4 * 2.8 * 0.01));
}

static void what_is_not_known_stays_so(void **state) {
    (void)state;
    const struct row skipped = {.verdict = VERDICT_SKIPPED, .median_ns = 5};
    assert_true(isnan(estimate_of_row(&skipped).value));
    const struct estimate single = row_estimate(1000, 0.01, 1);
    assert_true(isfinite(single.value));
    assert_true(isnan(estimate_interval(&single, 0.05).low));
    const struct estimate ratio = estimate_ratio(row_estimate(10, 0.01, 5), single);
    assert_true(isfinite(ratio.value));
    assert_true(isnan(estimate_interval(&ratio, 0.05).high));
    assert_true(isnan(estimate_ratio(estimate_unknown(), single).value));
    const double x[] = {1, 2};
    const struct estimate y[] = {row_estimate(1, 0.1, 5), row_estimate(2, 0.1, 5)};
    assert_true(isnan(estimate_exponent(x, y, 2).value));
}

static void steps_have_shares(void **state) {
    (void)state;
    const struct estimate share = estimate_share(30, 70, 0.02, 5);
    assert_true(fabs(share.value - 0.3) < 1e-12);
    // d(p/(p+q)): 0.3 * 0.7 * sqrt(2) * 0.02.
    assert_true(fabs(sqrt(share.variance) - 0.3 * 0.7 * sqrt(2) * 0.02) < 1e-12);
    // However uncertain, a share is one.
    const struct estimate vague = estimate_share(5, 95, 2, 3);
    const struct estimate_interval of_share = estimate_interval_share(&vague, 0.05);
    assert_true(of_share.low > 0 && of_share.low < 0.05);
    assert_true(of_share.high > 0.05 && of_share.high < 1);
    const struct estimate_interval narrow = estimate_interval_share(&share, 0.05);
    assert_true(holds(narrow, 0.3) && narrow.low > 0.28 && narrow.high < 0.32);
    const struct estimate ratio = estimate_step_ratio(30, 60, 0.02, 5);
    assert_true(fabs(sqrt(ratio.variance) - 0.5 * sqrt(2) * 0.02) < 1e-12);
}

// --- claims
// -------------------------------------------------------------------------------------------

/// A machine that is made up: what an operation, a score and a token cost.
struct model {
    double flop_ns;      ///< Of the products.
    double score_ns;     ///< Of softmax.
    double move_ns;      ///< Of an element that is split or concatenated.
    double position_ns;  ///< Of a position step, per element of X.
    double head_ns;      ///< Of each head, whatever its size.
    double threads;      ///< Speed-up over threads.
    double spread;       ///< Between launches.
    size_t launches;
};

/// A machine on which every claim is true.
static const struct model ideal = {0.01, 0.0001, 0.001, 0.001, 0, 2, 0.005, LAUNCHES};

struct fixture {
    struct options options;
    struct measurement m;
    struct study s;
    struct catalogue_kernel kernels[STUDY_KERNELS];
};

static void fixture_make(struct fixture *f) {
    static char *names[STUDY_KERNELS][2] = {
        {"qk_k", "qk"},        {"softmax_k", "softmax"}, {"pv_k", "pv"},       {"sdpa_k", "sdpa"},
        {"qkv_k", "qkv_proj"}, {"out_k", "out_proj"},    {"unfused_k", "mha"}, {"fused_k", "mha"}};
    static char isa[] = "avx2", tag[] = "k", hash[] = "";
    memset(f, 0, sizeof(*f));
    f->m.options = &f->options;
    f->s.m = &f->m;
    f->s.many = 2;
    for (size_t k = 0; k < STUDY_KERNELS; k++) {
        f->kernels[k] = (struct catalogue_kernel){
            .name = names[k][0], .op = names[k][1], .isa = isa, .tag = tag, .code_hash = hash};
        f->s.kernels[k] = &f->kernels[k];
    }
    study_plan(&f->s);
}

static void add_step(struct row *row, const char *op, double ns) {
    row->step = diag_alloc(realloc(row->step, (row->steps + 1) * sizeof(*row->step)));
    row->step[row->steps++] = (struct row_step){
        .op = diag_alloc(strdup(op)), .kernel = diag_alloc(strdup("k")), .ns = ns, .share = 0};
}

static double flops_ns(const struct model *model, const struct mha_shape *s) {
    // Of one of the two products of attention.
    return model->flop_ns * 2 * (double)(s->heads * s->head_dim) * (double)s->seq_q *
               (double)s->seq_kv +
           model->head_ns * (double)s->heads;
}

static double op_ns(const struct model *model, const char *op, const struct mha_shape *s) {
    const double width = (double)(s->heads * s->head_dim), tokens = (double)s->seq_q;
    if (strcmp(op, "qk") == 0 || strcmp(op, "pv") == 0) {
        return flops_ns(model, s);
    }
    if (strcmp(op, "softmax") == 0) {
        return model->score_ns * (double)s->heads * tokens * (double)s->seq_kv;
    }
    if (strcmp(op, "qkv_proj") == 0) {
        return model->flop_ns * 6 * tokens * width * width;
    }
    if (strcmp(op, "out_proj") == 0) {
        return model->flop_ns * 2 * tokens * width * width;
    }
    if (strcmp(op, "split") == 0 || strcmp(op, "concat") == 0) {
        return model->move_ns * tokens * width;
    }
    return model->position_ns * tokens * width;
}

static double row_ns(const struct model *model, struct row *row) {
    static const char *const layer[] = {"qkv_proj", "split", "split",  "split",   "qk",
                                        "softmax",  "pv",    "concat", "out_proj"};
    static const char *const position_op[] = {[POSITION_SINUSOID] = "sinusoid",
                                              [POSITION_LEARNED] = "sinusoid",
                                              [POSITION_ROPE] = "rope",
                                              [POSITION_ALIBI] = "bias",
                                              [POSITION_T5] = "bias"};
    const struct problem *p = &row->problem;
    double ns = 0;
    if (strcmp(p->op, "sdpa") == 0) {
        return 2 * flops_ns(model, &p->shape) + op_ns(model, "softmax", &p->shape);
    }
    if (strcmp(p->op, "mha") != 0) {
        return op_ns(model, p->op, &p->shape);
    }
    for (size_t i = 0; i < sizeof(layer) / sizeof(layer[0]); i++) {
        add_step(row, layer[i], op_ns(model, layer[i], &p->shape));
    }
    if (p->position.kind != POSITION_NONE) {
        const char *op = position_op[p->position.kind];
        add_step(row, op, op_ns(model, op, &p->shape));
    }
    for (size_t i = 0; i < row->steps; i++) {
        ns += row->step[i].ns;
    }
    return ns;
}

static void fixture_measure(struct fixture *f, const struct model *model) {
    static struct ceiling fma[2];
    for (size_t i = 0; i < 2; i++) {
        fma[i] = (struct ceiling){.kind = "fma",
                                  .isa = "avx2",
                                  .threads = i == 0 ? 1 : 2,
                                  .value = i == 0 ? 50 : 100,
                                  .spread = 0.005,
                                  .samples = 20};
    }
    f->m.ceilings = (struct ceiling_list){2, fma};
    for (size_t i = 0; i < f->m.result.count; i++) {
        struct row *row = &f->m.result.rows[i];
        const double ns = row_ns(model, row);
        set_times(row, row->threads > 1 ? ns / model->threads : ns, model->spread, model->launches);
    }
    results_derive(&f->m.result);
}

static void fixture_free(struct fixture *f) {
    study_free(&f->s);
    results_free(&f->m.result);
    free(f->m.row_problem);
}

static const struct study_claim *claim_of(const struct fixture *f, const char *id) {
    for (size_t i = 0; i < f->s.count; i++) {
        if (strcmp(f->s.claims[i].id, id) == 0) {
            return &f->s.claims[i];
        }
    }
    fail_msg("there is no claim %s", id);
    return NULL;
}

static void expect_verdict(const struct fixture *f, const char *id, enum study_verdict verdict) {
    const struct study_claim *claim = claim_of(f, id);
    if (claim->verdict != verdict) {
        fail_msg("%s: %s (%s), expected %s", id, study_verdict_text(claim->verdict), claim->why,
                 study_verdict_text(verdict));
    }
    assert_true(claim->why[0] != '\0' && claim->claim[0] != '\0' && claim->criterion[0] != '\0');
}

/// Reads what a made-up machine gives, and expects one verdict of some claims.
static void expect(const struct model *model, enum study_verdict verdict, const char *const *ids) {
    struct fixture f;
    fixture_make(&f);
    fixture_measure(&f, model);
    study_read(&f.s);
    for (size_t i = 0; ids[i]; i++) {
        expect_verdict(&f, ids[i], verdict);
    }
    fixture_free(&f);
}

static const char *const all_but_softmax[] = {"a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1",
                                              "d1", "d2", "d3", "e1", "e2", "f1", NULL};

#define IDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void claims_hold_where_they_are_true(void **state) {
    (void)state;
    expect(&ideal, STUDY_HOLDS, all_but_softmax);
    expect(&ideal, STUDY_FAILS, IDS("d4"));
    struct model slow_softmax = ideal;
    slow_softmax.score_ns = 4 * 64 * ideal.flop_ns;
    expect(&slow_softmax, STUDY_HOLDS, IDS("d4"));
}

static void claims_fail_where_they_are_false(void **state) {
    (void)state;
    struct model model = ideal;
    model.score_ns = 400 * ideal.flop_ns;  // as many scores as heads: 96 times one head's
    expect(&model, STUDY_FAILS, IDS("a1", "a2", "a3", "a4", "b1"));
    model = ideal;
    model.head_ns = 0.1 * ideal.flop_ns * 2 * 12288 * 128 * 128;  // a tenth of the whole, a head
    expect(&model, STUDY_FAILS, IDS("a1", "a2", "b1", "b2"));
    model = ideal;
    model.threads = 1.2;
    expect(&model, STUDY_FAILS, IDS("c1"));
    model = ideal;
    model.position_ns = 768 * ideal.flop_ns * 8;
    model.move_ns = 768 * ideal.flop_ns * 8;
    expect(&model, STUDY_FAILS, IDS("e1", "e2", "f1"));
    model = ideal;
    model.head_ns = 1e9;  // nothing grows with the length
    expect(&model, STUDY_FAILS, IDS("d1"));
}

static void noise_decides_nothing(void **state) {
    (void)state;
    struct model model = ideal;
    model.spread = 1;
    expect(&model, STUDY_INCONCLUSIVE, IDS("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1"));
    model = ideal;
    model.launches = 1;
    // Only what is read off the distances from a line needs no second launch.
    expect(&model, STUDY_INCONCLUSIVE,
           IDS("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1", "d3", "d4", "e1", "e2", "f1"));
}

/// Takes the time of every row of an op away.
static void skip_rows(struct fixture *f, const char *op) {
    for (size_t i = 0; i < f->m.result.count; i++) {
        struct row *row = &f->m.result.rows[i];
        if (strcmp(row->problem.op, op) == 0) {
            row->verdict = VERDICT_SKIPPED;
            row->reason = diag_alloc(strdup("the budget ended before its first sample"));
        }
    }
    results_derive(&f->m.result);
}

static void rows_without_a_time_are_named(void **state) {
    (void)state;
    static const struct {
        const char *op;
        const char *ids[8];
    } cases[] = {{"qk", {"a1", "a3", "b1", "b2", "c1", "d1"}},
                 {"sdpa", {"a2", "a4", "b1", "b2", "c1", "d1"}},
                 {"out_proj", {"d2"}},
                 {"mha", {"a5", "d3", "d4", "e1", "e2", "f1"}}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct fixture f;
        fixture_make(&f);
        fixture_measure(&f, &ideal);
        skip_rows(&f, cases[i].op);
        study_read(&f.s);
        for (size_t k = 0; cases[i].ids[k]; k++) {
            expect_verdict(&f, cases[i].ids[k], STUDY_INCONCLUSIVE);
            const char *why = claim_of(&f, cases[i].ids[k])->why;
            if (strstr(why, "SKIPPED") == NULL || strstr(why, cases[i].op) != why) {
                fail_msg("%s: %s", cases[i].ids[k], why);
            }
        }
        fixture_free(&f);
    }
}

static void one_thread_tells_nothing_of_threads(void **state) {
    (void)state;
    struct fixture f;
    fixture_make(&f);
    fixture_measure(&f, &ideal);
    f.s.many = 1;
    study_read(&f.s);
    expect_verdict(&f, "c1", STUDY_INCONCLUSIVE);
    assert_non_null(strstr(claim_of(&f, "c1")->why, "one thread only"));
    // Nor does a speed-up that nothing stands beside.
    study_free(&f.s);
    f.s.many = 2;
    f.m.ceilings.count = 1;
    study_read(&f.s);
    expect_verdict(&f, "c1", STUDY_INCONCLUSIVE);
    fixture_free(&f);
}

static void crossings_are_found(void **state) {
    (void)state;
    struct fixture f;
    fixture_make(&f);
    fixture_measure(&f, &ideal);
    study_read(&f.s);
    const struct study_claim *claim = claim_of(&f, "d3");
    const struct study_measure *at = NULL;
    for (size_t i = 0; i < claim->count; i++) {
        if (strcmp(claim->measures[i].unit, "tokens") == 0 && at == NULL) {
            at = &claim->measures[i];
        }
    }
    // As many operations at twice the width, 1536; what else there is moves it a little. Between
    // two lengths a share is no power law.
    assert_non_null(at);
    assert_true(at->value > 1024 && at->value < 2048);
    fixture_free(&f);
}

static void rows_are_asked_for_once(void **state) {
    (void)state;
    struct fixture f;
    fixture_make(&f);
    for (size_t i = 0; i < f.m.result.count; i++) {
        for (size_t k = 0; k < i; k++) {
            const struct row *a = &f.m.result.rows[i], *b = &f.m.result.rows[k];
            assert_false(a->threads == b->threads && strcmp(a->kernel, b->kernel) == 0 &&
                         problem_equal(&a->problem, &b->problem));
        }
        assert_true(problem_equal(&f.m.result.rows[i].problem, &f.m.problem[f.m.row_problem[i]]));
    }
    fixture_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(what_is_not_known_stays_so),
        cmocka_unit_test(steps_have_shares),
        cmocka_unit_test(rows_are_asked_for_once),
        cmocka_unit_test(claims_hold_where_they_are_true),
        cmocka_unit_test(claims_fail_where_they_are_false),
        cmocka_unit_test(noise_decides_nothing),
        cmocka_unit_test(rows_without_a_time_are_named),
        cmocka_unit_test(one_thread_tells_nothing_of_threads),
        cmocka_unit_test(crossings_are_found),
    };
    return cmocka_run_group_tests_name("study", tests, NULL, NULL);
}
