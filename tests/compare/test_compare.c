/// Comparing two files: every verdict, what is refused and what is noted, files that are no
/// results, and the forms of a report.
///
/// `test_compare make FOLDER` writes the files that compare.sh hands to the program.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compare.h"
#include "diag.h"
#include "op.h"
#include "report.h"
#include "results.h"
#include "stats.h"

static char folder[PATH_MAX];

static const char *path_of(const char *name) {
    static char paths[4][PATH_MAX + 64];
    static size_t next;
    char *path = paths[next++ % 4];
    (void)snprintf(path, sizeof(paths[0]), "%s/%.40s", folder, name);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    // Here, in the build's folder: some files are too large for a /tmp in memory.
    (void)snprintf(folder, sizeof(folder), "test-compare-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

static int remove_folder(void **state) {
    (void)state;
    return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

// --- results to compare
// ----------------------------------------------------------------------------------------------

/// One row of a result, in the few things that matter here.
struct spec {
    const char *isa, *tag, *code_hash;
    int threads;
    enum verdict verdict;
    size_t launches;
    double ns;
};

static char *copy(const char *text) {
    return diag_alloc(strdup(text));
}

/// Fills launches about `ns` whose logarithms scatter by some 0.2 %, always the same way.
static void fill_samples(struct row *row, const struct spec *spec, double phase) {
    row->launches = spec->launches;
    row->samples = diag_alloc(calloc(spec->launches + 1, sizeof(*row->samples)));
    for (size_t i = 0; i < spec->launches; i++) {
        const double launch = spec->ns * exp(0.003 * sin(phase + 2.4 * (double)i));
        row->samples[i].count = 3;
        row->samples[i].ns = diag_alloc(calloc(3, sizeof(double)));
        for (size_t j = 0; j < 3; j++) {
            row->samples[i].ns[j] = launch * (1.0 + 0.001 * ((double)j - 1.0));
        }
    }
}

static void add_row(struct result *result, const struct spec *spec) {
    struct row *rows = realloc(result->rows, (result->count + 1) * sizeof(*rows));
    result->rows = diag_alloc(rows);
    struct row *row = &result->rows[result->count++];
    memset(row, 0, sizeof(*row));
    char kernel[80];
    (void)snprintf(kernel, sizeof(kernel), "qk_f32_%s_%s", spec->isa, spec->tag);
    row->problem.op = op_find("qk")->name;
    row->problem.dtype = element_word(0);
    row->problem.shape = (struct mha_shape){1, 12, 12, 128, 128, 64};
    row->kernel = copy(kernel);
    row->isa = copy(spec->isa);
    row->tag = copy(spec->tag);
    row->code_hash = copy(spec->code_hash);
    row->threads = spec->threads;
    row->verdict = spec->verdict;
    row->reason = spec->verdict == VERDICT_PASSED ? NULL : copy("it is said why | <so> & \"on\"");
    row->iterations = 10;
    row->flops = 1e6;
    row->bytes = 1e5;
    row->max_ulp = row->bound_share = row->checked_share = UNKNOWN;
    row->effective_ghz = row->ceiling_share = row->pack_ns = row->create_ns = UNKNOWN;
    fill_samples(row, spec, (double)result->count + spec->ns);
}

/// Makes the context of a machine.
static json_t *make_context(const char *cpu, int threads, json_int_t seed, double min_time_s) {
    return diag_alloc(json_pack("{s:s, s:i, s:{s:i, s:s, s:I, s:f, s:{s:s, s:i, s:b}}}", "date",
                                "2026-11-27T20:00:00+00:00", "num_cpus", 2, "mhabench",
                                "schema_version", RESULTS_SCHEMA_VERSION, "version", "1", "seed",
                                seed, "min_time_s", min_time_s, "machine", "cpu", cpu,
                                "threads_allowed", threads, "emulated", 0));
}

static json_t *usual_context(void) {
    return make_context("Some CPU", 2, 1, 0.01);
}

/// Makes the JSON of a result with these rows.
static json_t *make_json(const struct spec *specs, size_t count, json_t *context) {
    struct result result = {.context = context};
    for (size_t i = 0; i < count; i++) {
        add_row(&result, &specs[i]);
    }
    results_derive(&result);
    json_t *json = results_to_json(&result);
    results_free(&result);
    return json;
}

static void write_json(const char *path, json_t *json) {
    assert_int_equal(results_write(json, path), EXIT_DONE);
    json_decref(json);
}

static const struct compare_settings usual = {.floor = 0.01, .launch_floor = 0.05};

/// Runs a comparison and returns what it printed on stderr, to be freed.
static char *compare_saying(const struct compare_settings *how, struct comparison_report *report,
                            int *code) {
    (void)fflush(NULL);
    const int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    const int file = open(path_of("said"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    *code = compare_files(path_of("base.json"), path_of("new.json"), how, report);
    (void)dup2(kept, STDERR_FILENO);
    (void)close(kept);
    char *text = diag_alloc(calloc(8192, 1));
    (void)pread(file, text, 8191, 0);
    (void)close(file);
    return text;
}

static void compare_now(const struct compare_settings *how, struct comparison_report *report) {
    int code = -1;
    char *said = compare_saying(how, report, &code);
    if (code != EXIT_DONE) {
        fail_msg("%s", said);
    }
    assert_string_equal(said, "");
    free(said);
}

/// Asserts that the two files are refused in one line that holds all of `parts`.
static void assert_refused(const struct compare_settings *how, const char *const *parts) {
    struct comparison_report report;
    int code = -1;
    char *said = compare_saying(how, &report, &code);
    assert_int_equal(code, EXIT_USAGE);
    const char *end = strchr(said, '\n');
    if (end == NULL || end[1] != '\0') {
        fail_msg("not one line: '%s'", said);
    }
    for (; *parts != NULL; parts++) {
        if (strstr(said, *parts) == NULL) {
            fail_msg("'%s' lacks '%s'", said, *parts);
        }
    }
    free(said);
    comparison_free(&report);
}

static const struct comparison *find_row(const struct comparison_report *report, const char *part) {
    const struct comparison *found = NULL;
    for (size_t i = 0; i < report->count; i++) {
        if (strstr(report->rows[i].name, part) != NULL) {
            assert_null(found);
            found = &report->rows[i];
        }
    }
    assert_non_null(found);
    return found;
}

static bool has_note(const struct comparison_report *report, const char *part) {
    for (size_t i = 0; i < report->notes; i++) {
        if (strstr(report->note[i], part) != NULL) {
            return true;
        }
    }
    return false;
}

static void assert_verdict(const struct comparison_report *report, const char *part,
                           enum comparison_verdict verdict) {
    const struct comparison *row = find_row(report, part);
    if (row->verdict != verdict) {
        fail_msg("%s: %s in place of %s", row->name, comparison_text(row->verdict),
                 comparison_text(verdict));
    }
}

// --- verdicts
// ----------------------------------------------------------------------------------------------

/// Two results that have a case of every verdict between them.
static const struct spec base_specs[] = {
    {"scalar", "plain", "s", 1, VERDICT_PASSED, 12, 90000},
    {"avx2", "same", "a1", 1, VERDICT_PASSED, 12, 1000},
    {"avx2", "slow", "b1", 1, VERDICT_PASSED, 12, 2000},
    {"avx2", "fast", "c1", 1, VERDICT_PASSED, 12, 3000},
    {"avx2", "few", "d1", 1, VERDICT_PASSED, 1, 4000},
    {"avx2", "drift", "e1", 1, VERDICT_PASSED, 12, 5000},
    {"avx2", "gone", "f1", 1, VERDICT_PASSED, 12, 6000},
    {"avx2", "broken", "g1", 1, VERDICT_PASSED, 12, 7000},
    {"avx2", "oldname", "h1", 1, VERDICT_PASSED, 12, 8000},
    {"avx512", "lacking", "i1", 1, VERDICT_SKIPPED, 0, 1},
    {"avx2", "lost", "j1", 1, VERDICT_PASSED, 12, 9000},
    {"avx2", "nocode", "", 1, VERDICT_PASSED, 12, 9000},
};
static const struct spec new_specs[] = {
    {"avx2", "nocode", "", 1, VERDICT_PASSED, 12, 9900},
    {"avx2", "lost", "j1", 1, VERDICT_SKIPPED, 0, 1},
    {"avx512", "lacking", "i1", 1, VERDICT_SKIPPED, 0, 1},
    {"scalar", "plain", "s", 1, VERDICT_PASSED, 12, 90000},
    {"avx2", "same", "a2", 1, VERDICT_PASSED, 12, 1001},
    {"avx2", "slow", "b2", 1, VERDICT_PASSED, 12, 2360},
    {"avx2", "fast", "c2", 1, VERDICT_PASSED, 12, 2400},
    {"avx2", "few", "d2", 1, VERDICT_PASSED, 1, 4200},
    {"avx2", "drift", "e1", 1, VERDICT_PASSED, 12, 5900},
    {"avx2", "broken", "g2", 1, VERDICT_FAILED, 12, 7000},
    {"avx2", "newname", "h1", 1, VERDICT_PASSED, 12, 8000},
    {"avx2", "fresh", "k1", 1, VERDICT_PASSED, 12, 8000},
};
enum {
    BASE_SPECS = sizeof(base_specs) / sizeof(base_specs[0]),
    NEW_SPECS = sizeof(new_specs) / sizeof(new_specs[0])
};

static void write_both(json_t *base_context, json_t *new_context) {
    write_json(path_of("base.json"), make_json(base_specs, BASE_SPECS, base_context));
    write_json(path_of("new.json"), make_json(new_specs, NEW_SPECS, new_context));
}

static void compare_specs(struct comparison_report *report) {
    write_both(usual_context(), usual_context());
    compare_now(&usual, report);
}

static void each_case_gets_its_verdict(void **state) {
    (void)state;
    struct comparison_report report;
    compare_specs(&report);
    assert_verdict(&report, "avx2_same/", COMPARISON_SAME);
    assert_verdict(&report, "avx2_slow/", COMPARISON_SLOWER);
    assert_verdict(&report, "avx2_fast/", COMPARISON_FASTER);
    assert_verdict(&report, "avx2_few/", COMPARISON_INCONCLUSIVE);
    assert_verdict(&report, "avx2_drift/", COMPARISON_ENV_DRIFT);
    assert_verdict(&report, "avx2_gone/", COMPARISON_MISSING);
    assert_verdict(&report, "avx2_lost/", COMPARISON_MISSING);
    assert_verdict(&report, "avx2_broken/", COMPARISON_ERROR);
    assert_verdict(&report, "avx2_fresh/", COMPARISON_NEW);
    assert_verdict(&report, "scalar_plain/", COMPARISON_SAME);
    // Peers have no code hash: two unknown ones are not equal code.
    assert_verdict(&report, "avx2_nocode/", COMPARISON_SLOWER);
    // Renamed: one row, both names.
    const struct comparison *renamed = find_row(&report, "avx2_newname/");
    assert_int_equal(renamed->verdict, COMPARISON_SAME);
    assert_non_null(strstr(renamed->old_name, "avx2_oldname/"));
    assert_true(renamed->same_code);
    assert_int_equal(report.count, 12);
    // What neither ran is no row, but is told.
    assert_true(has_note(&report, "1 cases that neither run measured"));
    const struct comparison *slow = find_row(&report, "avx2_slow/");
    assert_true(fabs(slow->change - 0.18) < 0.01);
    assert_true(slow->low < 0.18 && slow->high > 0.18 && slow->low > 0.01);
    assert_true(slow->smallest_effect > 0.01 && slow->smallest_effect < 0.05);
    assert_int_equal(slow->launches, 12);
    assert_string_equal(slow->kernel, "qk_f32_avx2_slow");
    assert_string_equal(slow->op, "qk");
    const struct comparison *broken = find_row(&report, "avx2_broken/");
    assert_non_null(strstr(broken->reason, "new: FAILED"));
    assert_true(isnan(broken->change) && isnan(broken->new_ns));
    // 5900 / 5000: the largest change among rows of equal code.
    assert_true(fabs(report.noise_floor - 0.18) < 0.01);
    assert_true(has_note(&report, "fewer than 6 launches"));
    comparison_free(&report);
}

static void exit_codes_follow_verdicts_and_gate(void **state) {
    (void)state;
    static const struct {
        enum comparison_verdict verdict;
        int slower, inconclusive;
    } codes[] = {
        {COMPARISON_SAME, 0, 0},         {COMPARISON_FASTER, 0, 0},    {COMPARISON_SLOWER, 1, 1},
        {COMPARISON_INCONCLUSIVE, 0, 3}, {COMPARISON_ENV_DRIFT, 0, 0}, {COMPARISON_MISSING, 1, 1},
        {COMPARISON_NEW, 0, 0},          {COMPARISON_ERROR, 1, 1},
    };
    static const char *const words[] = {"SAME",      "FASTER",  "SLOWER", "INCONCLUSIVE",
                                        "ENV-DRIFT", "MISSING", "NEW",    "ERROR"};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        struct comparison rows[2] = {{.verdict = COMPARISON_SAME}, {.verdict = codes[i].verdict}};
        const struct comparison_report report = {.count = 2, .rows = rows};
        assert_string_equal(comparison_text(codes[i].verdict), words[i]);
        assert_int_equal(comparison_exit(&report, GATE_SLOWER), codes[i].slower);
        assert_int_equal(comparison_exit(&report, GATE_INCONCLUSIVE), codes[i].inconclusive);
        assert_int_equal(comparison_exit(&report, GATE_NONE), 0);
        rows[0].verdict = COMPARISON_INCONCLUSIVE;
        assert_int_equal(comparison_exit(&report, GATE_INCONCLUSIVE),
                         codes[i].inconclusive == 1 ? 1 : 3);
    }
    const struct comparison_report none = {0};
    assert_int_equal(comparison_exit(&none, GATE_INCONCLUSIVE), 0);
}

/// A result against itself: nothing is slower, missing or in error, whatever it holds that was not
/// run.
static void a_file_equals_itself(void **state) {
    (void)state;
    struct comparison_report report;
    write_json(path_of("base.json"), make_json(base_specs, BASE_SPECS, usual_context()));
    write_json(path_of("new.json"), make_json(base_specs, BASE_SPECS, usual_context()));
    compare_now(&usual, &report);
    assert_int_equal(report.count, BASE_SPECS - 1);
    for (size_t i = 0; i < report.count; i++) {
        assert_int_equal(report.rows[i].verdict, COMPARISON_SAME);
        assert_true(fabs(report.rows[i].change) <= 0.0);
    }
    comparison_free(&report);
}

/// codspeed issue 520, rustbgpd pull request 566: identical code was flagged at +3.3 %, its
/// interval reaching from -3.1 to +3.0 %.
static void identical_code_is_not_flagged(void **state) {
    (void)state;
    struct comparison_report report;
    struct spec spec = {"avx2", "k", "h1", 1, VERDICT_PASSED, 4, 1000};
    write_json(path_of("base.json"), make_json(&spec, 1, usual_context()));
    spec.ns = 1033;
    write_json(path_of("new.json"), make_json(&spec, 1, usual_context()));
    compare_now(&usual, &report);
    assert_int_equal(report.rows[0].verdict, COMPARISON_SAME);
    assert_int_equal(comparison_exit(&report, GATE_INCONCLUSIVE), 0);
    assert_true(fabs(report.noise_floor - 0.033) < 0.005);
    comparison_free(&report);
    // The same times from other code: four launches do not tell.
    spec.code_hash = "h2";
    write_json(path_of("new.json"), make_json(&spec, 1, usual_context()));
    compare_now(&usual, &report);
    assert_int_equal(report.rows[0].verdict, COMPARISON_INCONCLUSIVE);
    comparison_free(&report);
}

// --- what can be compared
// ----------------------------------------------------------------------------------------------

static void other_conditions_are_refused(void **state) {
    (void)state;
    struct comparison_report report;
    const struct {
        json_t *context;
        const char *parts[3];
    } others[] = {
        {make_context("Other CPU", 2, 1, 0.01), {"cpu: \"Some CPU\"", "\"Other CPU\""}},
        {make_context("Some CPU", 8, 1, 0.01), {"threads_allowed: 2", "8 in the new"}},
        {make_context("Some CPU", 2, 7, 0.01), {"seed: 1", "7 in the new"}},
        {make_context("Some CPU", 2, 1, 0.5), {"seconds of a sample: 0.01", "0.5 in the new"}},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_both(usual_context(), others[i].context);
        assert_refused(&usual, others[i].parts);
        struct compare_settings relative = usual;
        relative.relative = true;
        compare_now(&relative, &report);
        assert_true(has_note(&report, others[i].parts[0]));
        comparison_free(&report);
    }
}

/// A machine that is three times as fast, where one kernel fell behind the others.
static void relative_is_against_the_scalar_kernel(void **state) {
    (void)state;
    static const struct spec base[] = {
        {"scalar", "plain", "s", 1, VERDICT_PASSED, 8, 90000},
        {"avx2", "same", "a1", 1, VERDICT_PASSED, 8, 9000},
        {"avx2", "slow", "b1", 1, VERDICT_PASSED, 8, 9000},
        {"avx2", "slow", "b1", 2, VERDICT_PASSED, 8, 5000},
    };
    static const struct spec now[] = {
        {"scalar", "plain", "s", 1, VERDICT_PASSED, 8, 30000},
        {"avx2", "same", "a2", 1, VERDICT_PASSED, 8, 3000},
        {"avx2", "slow", "b2", 1, VERDICT_PASSED, 8, 6000},
        {"avx2", "slow", "b2", 2, VERDICT_PASSED, 8, 1700},
    };
    struct comparison_report report;
    struct compare_settings relative = usual;
    relative.relative = true;
    write_json(path_of("base.json"), make_json(base, 4, usual_context()));
    write_json(path_of("new.json"), make_json(now, 4, make_context("Other CPU", 2, 1, 0.01)));
    compare_now(&relative, &report);
    assert_int_equal(report.count, 3);
    const struct comparison *same = find_row(&report, "avx2_same/");
    assert_true(fabs(same->change) < 0.01);
    const struct comparison *slow = NULL, *alone = NULL;
    for (size_t i = 0; i < report.count; i++) {
        if (strstr(report.rows[i].name, "avx2_slow/") != NULL) {
            const bool one = strstr(report.rows[i].name, "threads:1") != NULL;
            slow = one ? &report.rows[i] : slow;
            alone = one ? alone : &report.rows[i];
        }
    }
    assert_non_null(slow);
    assert_non_null(alone);
    assert_int_equal(slow->verdict, COMPARISON_SLOWER);
    assert_true(fabs(slow->change - 1.0) < 0.02);
    // Two threads have no scalar kernel.
    assert_int_equal(alone->verdict, COMPARISON_ERROR);
    assert_non_null(strstr(alone->reason, "no scalar kernel"));
    comparison_free(&report);
}

// --- plain files of Google Benchmark
// ----------------------------------------------------------------------------------------------

static const char plain_head[] = "{\"context\": {\"num_cpus\": 2}, \"benchmarks\": [";

/// Writes a plain file of these entries.
static void write_plain(const char *name, const char *entries) {
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s]}", plain_head, entries) > 0);
    write_text(path_of(name), text);
    free(text);
}

/// github-action-benchmark issue 122: 990 ns against 1.1 us.
static void units_are_normalised(void **state) {
    (void)state;
    struct comparison_report report;
    write_plain("base.json",
                "{\"name\": \"a\", \"real_time\": 990, \"time_unit\": \"ns\"},"
                "{\"name\": \"b\", \"real_time\": 2, \"time_unit\": \"s\"}");
    write_plain("new.json",
                "{\"name\": \"a\", \"real_time\": 1.1, \"time_unit\": \"us\"},"
                "{\"name\": \"b\", \"real_time\": 2000, \"time_unit\": \"ms\"}");
    compare_now(&usual, &report);
    assert_int_equal(report.count, 2);
    assert_true(fabs(report.rows[0].change - (1100.0 / 990.0 - 1.0)) < 1e-12);
    assert_true(fabs(report.rows[0].new_ns - 1100.0) < 1e-9);
    assert_true(fabs(report.rows[1].change) < 1e-12);
    assert_int_equal(report.rows[0].verdict, COMPARISON_INCONCLUSIVE);
    assert_true(has_note(&report, "new: 2 times were converted to ns"));
    comparison_free(&report);
    write_plain("new.json", "{\"name\": \"a\", \"real_time\": 1.1, \"time_unit\": \"min\"}");
    assert_refused(&usual, (const char *const[]){"new.json", "benchmarks[0]", "'min'", NULL});
}

/// Repetitions are samples of one launch; aggregates count only where there is nothing else.
static void repetitions_and_aggregates(void **state) {
    (void)state;
    struct comparison_report report;
    write_plain(
        "base.json",
        "{\"name\": \"r\", \"run_name\": \"r\", \"run_type\": \"iteration\", \"real_time\": 90},"
        "{\"name\": \"r\", \"run_name\": \"r\", \"run_type\": \"iteration\", \"real_time\": 100},"
        "{\"name\": \"r\", \"run_name\": \"r\", \"run_type\": \"iteration\", \"real_time\": 400},"
        "{\"name\": \"r_mean\", \"run_name\": \"r\", \"run_type\": \"aggregate\","
        " \"aggregate_name\": \"mean\", \"real_time\": 196.7},"
        "{\"name\": \"g_mean\", \"run_name\": \"g\", \"run_type\": \"aggregate\","
        " \"aggregate_name\": \"mean\", \"real_time\": 60},"
        "{\"name\": \"g_median\", \"run_name\": \"g\", \"run_type\": \"aggregate\","
        " \"aggregate_name\": \"median\", \"real_time\": 50},"
        "{\"name\": \"g_cv\", \"run_name\": \"g\", \"run_type\": \"aggregate\","
        " \"aggregate_name\": \"cv\", \"aggregate_unit\": \"percentage\", \"real_time\": 0.1},"
        "{\"name\": \"g_BigO\", \"run_name\": \"o\", \"run_type\": \"aggregate\","
        " \"aggregate_name\": \"BigO\", \"real_coefficient\": 3}");
    write_plain("new.json",
                "{\"name\": \"r\", \"real_time\": 300},"
                "{\"name\": \"g\", \"real_time\": 50}");
    compare_now(&usual, &report);
    assert_int_equal(report.count, 2);
    assert_true(fabs(report.rows[0].base_ns - 100.0) < 1e-12);
    assert_true(fabs(report.rows[1].base_ns - 50.0) < 1e-12);
    assert_int_equal(report.rows[0].launches, 1);
    assert_true(has_note(&report, "base: 1 cases have aggregates only"));
    assert_true(has_note(&report, "count as one launch"));
    comparison_free(&report);
}

/// embench-iot pull request 201, arnio issue 1908: a missing row or a baseline of 0 crashed.
static void rows_without_a_time_are_errors(void **state) {
    (void)state;
    struct comparison_report report;
    write_plain("base.json",
                "{\"name\": \"zero\", \"real_time\": 0}, {\"name\": \"none\"},"
                "{\"name\": \"gone\", \"real_time\": 1}, {\"name\": \"text\", \"real_time\": 1},"
                "{\"name\": \"failed\", \"real_time\": 1}, {\"name\": \"huge\", \"real_time\": 1}");
    write_plain(
        "new.json",
        "{\"name\": \"zero\", \"real_time\": 1}, {\"name\": \"none\", \"real_time\": 1},"
        "{\"name\": \"fresh\", \"real_time\": 1}, {\"name\": \"text\", \"real_time\": \"1\"},"
        "{\"name\": \"failed\", \"error_occurred\": true, \"error_message\": \"no luck\"},"
        "{\"name\": \"huge\", \"real_time\": 1e308, \"time_unit\": \"s\"}");
    compare_now(&usual, &report);
    assert_verdict(&report, "zero", COMPARISON_ERROR);
    assert_verdict(&report, "none", COMPARISON_ERROR);
    assert_verdict(&report, "text", COMPARISON_ERROR);
    assert_verdict(&report, "failed", COMPARISON_ERROR);
    assert_verdict(&report, "huge", COMPARISON_ERROR);
    assert_verdict(&report, "gone", COMPARISON_MISSING);
    assert_verdict(&report, "fresh", COMPARISON_NEW);
    assert_non_null(strstr(find_row(&report, "failed")->reason, "no luck"));
    assert_non_null(strstr(find_row(&report, "zero")->reason, "base: its time is 0"));
    assert_int_equal(comparison_exit(&report, GATE_SLOWER), EXIT_FOUND);
    comparison_free(&report);
    // A result of ours with a baseline of 0.
    json_t *json = make_json(base_specs, 2, usual_context());
    json_t *entry = json_array_get(json_object_get(json, "benchmarks"), 1);
    (void)json_object_set_new(json_object_get(entry, "mhabench"), "median_ns", json_real(0.0));
    write_json(path_of("base.json"), json);
    write_json(path_of("new.json"), make_json(base_specs, 2, usual_context()));
    compare_now(&usual, &report);
    assert_verdict(&report, "avx2_same/", COMPARISON_ERROR);
    comparison_free(&report);
}

// --- files that are no results
// ----------------------------------------------------------------------------------------------

/// tasty-bench issue 9: two rows of one name made "99 % faster".
static void duplicate_names_are_refused(void **state) {
    (void)state;
    const struct spec twice[] = {base_specs[1], base_specs[2], base_specs[1]};
    write_json(path_of("base.json"), make_json(base_specs, 2, usual_context()));
    write_json(path_of("new.json"), make_json(twice, 3, usual_context()));
    assert_refused(&usual, (const char *const[]){"new.json", "benchmarks[0]", "benchmarks[2]",
                                                 "avx2_same/", NULL});
}

static void unreadable_files_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } files[] = {
        {"", "line 1"},
        {"{\"context\": {}, \"benchmarks\": [{\"name\": \"a\", \"real_ti", "line 1"},
        {"{\"benchmarks\": [{\"name\": \"a\", \"real_time\": NaN}]}", "line 1"},
        {"{\"benchmarks\": [{\"name\": \"a\", \"real_time\": 1e999}]}", "line 1"},
        {"{\"benchmarks\": [{\"name\": \"a\\u0000b\", \"real_time\": 1}]}", "line 1"},
        {"{\"benchmarks\": [{\"name\": \"a\", \"name\": \"b\"}]}", "duplicate"},
        {"{\"benchmarks\": []} trailing", "line 1"},
        {"[]", "no JSON object"},
        {"\"benchmarks\"", "line 1"},
        {"{}", "\"benchmarks\""},
        {"{\"benchmarks\": {}}", "\"benchmarks\""},
        {"{\"benchmarks\": [1]}", "benchmarks[0]"},
        {"{\"benchmarks\": [null]}", "benchmarks[0]"},
        {"{\"benchmarks\": [{\"name\": 3}]}", "benchmarks[0]"},
        {"{\"benchmarks\": [{\"name\": \"a\", \"time_unit\": 3}]}", "time_unit"},
        {"{\"context\": {\"mhabench\": 1}, \"benchmarks\": []}", "schema_version"},
        {"{\"context\": {\"mhabench\": {\"schema_version\": 99}}, \"benchmarks\": []}", "99"},
        {"{\"context\": {\"mhabench\": {\"schema_version\": 1}}, \"benchmarks\": [{}]}",
         "benchmarks[0]"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_plain("base.json", "{\"name\": \"a\", \"real_time\": 1}");
        write_text(path_of("new.json"), files[i].text);
        assert_refused(&usual, (const char *const[]){"new.json", files[i].part, NULL});
        assert_int_equal(rename(path_of("new.json"), path_of("base.json")), 0);
        write_plain("new.json", "{\"name\": \"a\", \"real_time\": 1}");
        assert_refused(&usual, (const char *const[]){"base.json", files[i].part, NULL});
    }
    (void)unlink(path_of("base.json"));
    assert_refused(&usual, (const char *const[]){"base.json", NULL});
    // Two files without any case guard nothing.
    write_plain("base.json", "");
    write_plain("new.json", "");
    assert_refused(&usual, (const char *const[]){"neither has a case", NULL});
}

#if !defined(MHA_SANITIZE_address) && !defined(MHA_SANITIZE_thread)
enum { MANY = 200 * 1024 * 1024 };

/// Fills the new file with `unit` up to some size.
static void write_many(const char *begin, const char *unit, size_t bytes) {
    FILE *file = fopen(path_of("new.json"), "we");
    assert_non_null(file);
    assert_true(fputs(begin, file) >= 0);
    char block[6000];
    size_t length = 0;
    while (length + strlen(unit) < sizeof(block)) {
        length += (size_t)snprintf(block + length, sizeof(block) - length, "%s", unit);
    }
    for (size_t done = 0; done < bytes; done += length) {
        assert_int_equal(fwrite(block, 1, length, file), length);
    }
    assert_int_equal(fclose(file), 0);
}

/// Compares in a child that may have `memory` bytes: it must be refused for the reason `part`.
static void assert_refused_within(rlim_t memory, const char *part) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {memory, memory};
        struct comparison_report report;
        if (setrlimit(RLIMIT_DATA, &limit) != 0) {
            _exit(1);
        }
        int code = -1;
        const char *said = compare_saying(&usual, &report, &code);
        // Memory that cannot be had ends with the same code, but not with these words.
        _exit(code == EXIT_USAGE && strstr(said, part) != NULL ? 42 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

static void huge_files_take_bounded_memory(void **state) {
    (void)state;
    write_plain("base.json", "{\"name\": \"a\", \"real_time\": 1}");
    // 200 MB: refused by its size alone, within a tenth of it.
    write_many(plain_head, "{\"name\": \"a\", \"real_time\": 1}, ", MANY);
    assert_refused_within(MANY / 10, "not a result file");
    // A hole of 200 MB.
    write_text(path_of("new.json"), "{");
    assert_int_equal(truncate(path_of("new.json"), MANY), 0);
    assert_refused_within(MANY / 10, "not a result file");
    // Below the limit of size, but of the values that take most memory for each byte.
    static const char *const hostile[] = {"0,", "[],", "{},", "\"\",", "[[[[]]]],"};
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        write_many("{\"benchmarks\": [", hostile[i], 60 * 1024 * 1024);
        assert_refused_within((rlim_t)768 * 1024 * 1024, "of memory: not a result file");
    }
    // Nested deeper than any stack should follow.
    write_many("{\"benchmarks\": ", "[", 10 * 1024 * 1024);
    assert_refused_within(MANY, "line 1");
    write_many("{\"benchmarks\": ", "{\"a\":", 10 * 1024 * 1024);
    assert_refused_within(MANY, "line 1");
    // One endless name.
    write_many("{\"benchmarks\": [{\"name\": \"", "aaaaaaaa", 30 * 1024 * 1024);
    assert_refused_within(MANY, "line 1");
    (void)unlink(path_of("new.json"));
}
#endif

// --- forms
// ----------------------------------------------------------------------------------------------

/// A comparison whose texts try to break out of every form.
static void make_hostile(struct comparison_report *report) {
    static const char evil[] =
        "a|b`c`</code><script>alert(\"1\")</script> @team #1 https://x.y www.z.w [l](u) *_~\\ "
        "\x1b[31m\n\x01 ]]> &amp; \xc3\xa9 \xef\xbf\xbf \xe2\x80\xae";
    compare_specs(report);
    for (size_t i = 0; i < report->count; i++) {
        struct comparison *row = &report->rows[i];
        char *name = NULL;
        assert_true(asprintf(&name, "%s%s", row->name, evil) > 0);
        free(row->name);
        row->name = name;
        free(row->reason);
        row->reason = copy(evil);
    }
    free(report->base_label);
    report->base_label = copy("\xff\xfe|evil`");
    free(report->note[0]);
    report->note[0] = copy(evil);
}

/// Walks through XML: tags must match, attributes be quoted, text be escaped, characters be legal.
/// Gets the number of elements called `name`.
static size_t check_xml(const char *xml, const char *name) {
    char stack[16][32];
    size_t depth = 0, found = 0;
    assert_true(strncmp(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", 39) == 0);
    json_t *valid = json_string(xml);  // NULL unless it is UTF-8
    assert_non_null(valid);
    json_decref(valid);
    assert_null(strstr(xml, "\xef\xbf\xbf"));
    for (const char *at = xml + 39; *at != '\0';) {
        assert_true((unsigned char)*at >= ' ' || *at == '\n' || *at == '\t');
        if (*at == '&') {
            const size_t length = strcspn(at, ";");
            assert_true(at[length] == ';' && length < 8);
            at += length;
        } else if (strncmp(at, "</", 2) == 0) {
            const size_t length = strcspn(at, ">");
            assert_true(depth > 0);
            depth--;
            assert_int_equal(strlen(stack[depth]), length - 2);
            assert_memory_equal(stack[depth], at + 2, length - 2);
            at += length + 1;
        } else if (*at == '<') {
            const size_t length = strcspn(at + 1, " >");
            assert_true(depth < 16 && length > 0 && length < 32);
            (void)snprintf(stack[depth], 32, "%.*s", (int)length, at + 1);
            found += strcmp(stack[depth], name) == 0;
            depth++;
            at += length + 1;
            while (*at == ' ') {
                at += 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz");
                assert_true(strncmp(at, "=\"", 2) == 0);
                const size_t value = strcspn(at + 2, "\"<");
                assert_true(at[2 + value] == '"');
                at += value + 3;
            }
            assert_true(*at == '>');
            at++;
        } else {
            at++;
        }
    }
    assert_int_equal(depth, 0);
    return found;
}

static void junit_is_well_formed(void **state) {
    (void)state;
    struct comparison_report report;
    make_hostile(&report);
    char *xml = report_junit(&report, GATE_SLOWER);
    assert_int_equal(check_xml(xml, "testcase"), report.count);
    // SLOWER twice, MISSING twice; ERROR once; INCONCLUSIVE once.
    assert_int_equal(check_xml(xml, "failure"), 4);
    assert_int_equal(check_xml(xml, "error"), 1);
    assert_int_equal(check_xml(xml, "skipped"), 1);
    assert_non_null(strstr(xml, "tests=\"12\" failures=\"4\" errors=\"1\" skipped=\"1\""));
    assert_non_null(strstr(xml, "classname=\"qk_f32_avx2_slow\" name=\"batch:1/heads:12"));
    free(xml);
    xml = report_junit(&report, GATE_INCONCLUSIVE);
    assert_int_equal(check_xml(xml, "failure"), 5);
    free(xml);
    comparison_free(&report);
}

static size_t count_lines(const char *text, const char *beginning) {
    size_t count = 0;
    for (const char *line = text; line != NULL && *line != '\0';) {
        count += strncmp(line, beginning, strlen(beginning)) == 0;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return count;
}

static void markdown_is_escaped(void **state) {
    (void)state;
    struct comparison_report report;
    make_hostile(&report);
    char *text = report_markdown(&report, 0);
    json_t *valid = json_string(text);
    assert_non_null(valid);
    json_decref(valid);
    static const char *const forbidden[] = {"<script", "@team",        "#1 ",           "https://",
                                            "www.z",   "[l](u)",       "\x1b",          "`",
                                            "*",       "\xe2\x80\xae", "</code></code>"};
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (strstr(text, forbidden[i]) != NULL) {
            fail_msg("'%s' stands in: %s", forbidden[i], text);
        }
    }
    // Every line of the table has its seven cells and no more.
    size_t rows = 0;
    for (const char *line = strchr(text, '|'); line != NULL && *line == '|';) {
        const size_t length = strcspn(line, "\n");
        size_t bars = 0;
        for (size_t i = 0; i < length; i++) {
            bars += line[i] == '|';
        }
        assert_int_equal(bars, 8);
        rows++;
        line += length + (line[length] == '\n');
    }
    assert_int_equal(rows, report.count + 2);
    free(text);
    comparison_free(&report);
}

/// A table of many rows in little room: the important ones are there, the others are counted.
static void markdown_fits_and_cuts_by_importance(void **state) {
    (void)state;
    enum { ROWS = 20000 };
    struct comparison_report report;
    compare_specs(&report);
    const struct comparison model = *find_row(&report, "avx2_same/");
    struct comparison *rows = realloc(report.rows, (report.count + ROWS) * sizeof(*rows));
    report.rows = diag_alloc(rows);
    const struct comparison kept = report.rows[1];
    assert_int_equal(kept.verdict, COMPARISON_SAME);
    (void)model;
    for (size_t i = 0; i < ROWS; i++) {
        struct comparison *row = &report.rows[report.count++];
        *row = kept;
        row->old_name = row->reason = NULL;
        row->kernel = copy(kept.kernel);
        row->op = copy(kept.op);
        assert_true(asprintf(&row->name, "%s%zu", kept.name, i) > 0);
        row->verdict = i % 5 == 0 ? COMPARISON_INCONCLUSIVE : COMPARISON_SAME;
    }
    // The last row is the worst.
    report.rows[report.count - 1].verdict = COMPARISON_SLOWER;
    report.rows[report.count - 1].change = 3.0;
    static const size_t limits[] = {2000, 5000, 65536, 1024 * 1024, 0};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const size_t most = limits[i] > 0 ? limits[i] : 1024 * 1024;
        char *text = report_markdown(&report, limits[i]);
        assert_true(strlen(text) <= most);
        // No more is cut than must be: a row has some 200 bytes, what is told of the cut 480.
        assert_true(strlen(text) + 1100 > most);
        assert_non_null(strstr(text, "| SLOWER | +300.00%"));
        const size_t shown = count_lines(text, "| SLOWER") + count_lines(text, "| ERROR") +
                             count_lines(text, "| MISSING") + count_lines(text, "| INCONCLUSIVE");
        const size_t less = count_lines(text, "| SAME") + count_lines(text, "| FASTER") +
                            count_lines(text, "| NEW") + count_lines(text, "| ENV-DRIFT");
        char told[64];
        (void)snprintf(told, sizeof(told),
                       "\n%zu more rows did not fit: ", report.count - shown - less);
        assert_non_null(strstr(text, told));
        // Nothing less important while something more important is missing.
        assert_true(less == 0 || strstr(strstr(text, told), "INCONCLUSIVE") == NULL);
        free(text);
    }
    comparison_free(&report);
}

static void saved_comparisons_read_back(void **state) {
    (void)state;
    struct comparison_report report, back;
    char why[256];
    make_hostile(&report);
    json_t *json = report_json(&report);
    assert_int_equal(results_write(json, path_of("saved.json")), EXIT_DONE);
    json_t *root = results_load(path_of("saved.json"));
    assert_non_null(root);
    assert_true(report_is_json(root));
    assert_true(report_from_json(root, &back, why, sizeof(why)));
    json_t *again = report_json(&back);
    assert_true(json_equal(json, again));
    char *one = report_junit(&report, GATE_SLOWER), *two = report_junit(&back, GATE_SLOWER);
    assert_string_equal(one, two);
    free(one);
    free(two);
    json_decref(again);
    comparison_free(&back);
    // Every member that is not what it must be is refused, and nothing is left behind.
    const char *key = NULL;
    json_t *value = NULL;
    json_t *wrong = json_deep_copy(root);
    json_object_foreach(root, key, value) {
        if (strstr(key, "context") == NULL && strcmp(key, "counts") != 0) {
            (void)json_object_set_new(wrong, key, json_true());
            assert_false(report_from_json(wrong, &back, why, sizeof(why)));
            assert_non_null(strstr(why, key));
            (void)json_object_set(wrong, key, value);
        }
    }
    json_object_foreach(json_array_get(json_object_get(root, "rows"), 0), key, value) {
        json_t *row = json_array_get(json_object_get(wrong, "rows"), 3);
        if (strcmp(key, "same_code") != 0) {
            json_t *kept = json_incref(json_object_get(row, key));
            (void)json_object_set_new(row, key, json_false());
            assert_false(report_from_json(wrong, &back, why, sizeof(why)));
            assert_non_null(strstr(why, "rows[3]"));
            (void)json_object_set_new(row, key, kept);
        }
    }
    assert_true(report_from_json(wrong, &back, why, sizeof(why)));
    comparison_free(&back);
    json_decref(wrong);
    json_decref(root);
    json_decref(json);
    comparison_free(&report);
}

/// The entries of customSmallerIsBetter: the fields that the action wants, of the types it wants.
static void check_gab(const json_t *array, size_t count) {
    assert_int_equal(json_array_size(array), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(array, i);
        assert_true(json_is_string(json_object_get(entry, "name")));
        assert_string_equal(json_string_value(json_object_get(entry, "unit")), "ns/iter");
        assert_true(json_real_value(json_object_get(entry, "value")) > 0.0);
        assert_true(json_is_string(json_object_get(entry, "extra")));
        const json_t *range = json_object_get(entry, "range");
        assert_true(range == NULL || strncmp(json_string_value(range), "± ", 3) == 0);
    }
}

static void forms_of_one_result(void **state) {
    (void)state;
    struct result result;
    json_t *json = make_json(new_specs, NEW_SPECS, usual_context());
    assert_int_equal(results_from_json("made", json, &result), EXIT_DONE);
    json_decref(json);
    json_t *gab = report_result_gab(&result);
    check_gab(gab, NEW_SPECS - 3);
    json_decref(gab);
    char *xml = report_result_junit(&result);
    assert_int_equal(check_xml(xml, "testcase"), NEW_SPECS);
    assert_int_equal(check_xml(xml, "failure"), 1);
    assert_int_equal(check_xml(xml, "skipped"), 2);
    free(xml);
    char *text = report_result_markdown(&result, 0);
    assert_int_equal(count_lines(text, "| PASSED"), NEW_SPECS - 3);
    // The worst first.
    assert_true(strstr(text, "| FAILED") < strstr(text, "| PASSED"));
    free(text);
    results_free(&result);
    struct comparison_report report;
    compare_specs(&report);
    gab = report_gab(&report);
    // All that has a time now: not what is missing, lost or broken.
    check_gab(gab, 9);
    json_decref(gab);
    comparison_free(&report);
}

/// Makes a locale in the folder; false where localedef or its sources are not installed.
static bool make_locale(const char *path) {
    const pid_t child = fork();
    if (child == 0) {
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        (void)execlp("localedef", "localedef", "-i", "de_DE", "-f", "UTF-8", path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/// Sets a locale with a decimal comma, one of the system's or one that is made.
static bool set_comma_locale(void) {
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) {
        char path[PATH_MAX], *absolute = realpath(folder, NULL);
        (void)snprintf(path, sizeof(path), "%s/de_DE.UTF-8", absolute);
        (void)setenv("LOCPATH", absolute, 1);
        const bool set = make_locale(path) && setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
        (void)unsetenv("LOCPATH");
        free(absolute);
        if (!set) {
            return false;
        }
    }
    return strcmp(localeconv()->decimal_point, ",") == 0;
}

static char *all_forms(const struct comparison_report *report) {
    size_t bytes = 0;
    char *parts[5] = {report_markdown(report, 0), report_junit(report, GATE_SLOWER)};
    json_t *json = report_json(report), *gab = report_gab(report);
    parts[2] = results_text(json, &bytes);
    parts[3] = results_text(gab, &bytes);
    FILE *out = diag_alloc(open_memstream(&parts[4], &bytes));
    report_table(report, out, true);
    assert_int_equal(fclose(out), 0);
    char *text = NULL;
    assert_true(asprintf(&text, "%s%s%s%s%s", parts[0], parts[1], parts[2], parts[3], parts[4]) >
                0);
    for (size_t i = 0; i < 5; i++) {
        free(parts[i]);
    }
    json_decref(json);
    json_decref(gab);
    return text;
}

static void forms_are_the_same_in_every_locale(void **state) {
    (void)state;
    struct comparison_report report;
    compare_specs(&report);
    char *plain = all_forms(&report);
    if (!set_comma_locale()) {
        print_message("no locale with a decimal comma\n");
        free(plain);
        comparison_free(&report);
        skip();
    }
    char *comma = all_forms(&report);
    (void)setlocale(LC_ALL, "C");
    assert_string_equal(plain, comma);
    free(plain);
    free(comma);
    comparison_free(&report);
}

static void the_table_has_color_only_when_asked(void **state) {
    (void)state;
    struct comparison_report report;
    make_hostile(&report);
    for (int color = 0; color < 2; color++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *out = diag_alloc(open_memstream(&text, &bytes));
        report_table(&report, out, color != 0);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(strchr(text, '\x1b') != NULL, color);
        assert_int_equal(strstr(text, "\033[1;31mSLOWER") != NULL, color);
        // What the names hold is not let through, with colour or without.
        assert_null(strstr(text, "\x1b[31m"));
        assert_null(strstr(text, "\xe2\x80\xae"));
        // The most important first, the counts last.
        assert_true(strstr(text, "SLOWER") < strstr(text, "SAME  "));
        assert_non_null(strstr(text,
                               "12 cases: 2 SLOWER, 1 ERROR, 2 MISSING, 1 INCONCLUSIVE, "
                               "1 FASTER, 1 NEW, 1 ENV-DRIFT, 3 SAME\n"));
        free(text);
    }
    comparison_free(&report);
}

/// Writes the files of compare.sh.
static int make_files(const char *where) {
    (void)snprintf(folder, sizeof(folder), "%s", where);
    struct spec specs[3] = {{"scalar", "plain", "s", 1, VERDICT_PASSED, 12, 90000},
                            {"avx2", "one", "a1", 1, VERDICT_PASSED, 12, 1000},
                            {"avx2", "two", "b1", 1, VERDICT_PASSED, 12, 2000}};
    write_json(path_of("base.json"), make_json(specs, 3, usual_context()));
    write_json(path_of("other_cpu.json"),
               make_json(specs, 3, make_context("Other CPU", 2, 1, 0.01)));
    write_json(path_of("missing.json"), make_json(specs, 2, usual_context()));
    specs[2].code_hash = "b2";
    write_json(path_of("same.json"), make_json(specs, 3, usual_context()));
    specs[2].ns = 2360;
    write_json(path_of("slower.json"), make_json(specs, 3, usual_context()));
    specs[2].ns = 1700;
    write_json(path_of("faster.json"), make_json(specs, 3, usual_context()));
    specs[2].ns = 2100;
    specs[2].launches = 2;
    write_json(path_of("few.json"), make_json(specs, 3, usual_context()));
    specs[2].verdict = VERDICT_FAILED;
    write_json(path_of("failed.json"), make_json(specs, 3, usual_context()));
    specs[2] = (struct spec){"avx2", "two", "b1", 1, VERDICT_PASSED, 12, 2360};
    write_json(path_of("drift.json"), make_json(specs, 3, usual_context()));
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "make") == 0) {
        return make_files(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case_gets_its_verdict),
        cmocka_unit_test(exit_codes_follow_verdicts_and_gate),
        cmocka_unit_test(a_file_equals_itself),
        cmocka_unit_test(identical_code_is_not_flagged),
        cmocka_unit_test(other_conditions_are_refused),
        cmocka_unit_test(relative_is_against_the_scalar_kernel),
        cmocka_unit_test(units_are_normalised),
        cmocka_unit_test(repetitions_and_aggregates),
        cmocka_unit_test(rows_without_a_time_are_errors),
        cmocka_unit_test(duplicate_names_are_refused),
        cmocka_unit_test(unreadable_files_are_refused),
#if !defined(MHA_SANITIZE_address) && !defined(MHA_SANITIZE_thread)
        // These sanitizers take more memory for themselves than any limit here.
        cmocka_unit_test(huge_files_take_bounded_memory),
#endif
        cmocka_unit_test(junit_is_well_formed),
        cmocka_unit_test(markdown_is_escaped),
        cmocka_unit_test(markdown_fits_and_cuts_by_importance),
        cmocka_unit_test(saved_comparisons_read_back),
        cmocka_unit_test(forms_of_one_result),
        cmocka_unit_test(forms_are_the_same_in_every_locale),
        cmocka_unit_test(the_table_has_color_only_when_asked),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
