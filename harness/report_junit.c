/// JUnit XML, in the dialect that Jenkins, GitLab and GitHub's report actions share: <testsuites>,
/// <testsuite>, <testcase classname name time> with at most one of <failure>, <error>, <skipped>.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "report_text.h"

enum outcome { OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_ERROR, OUTCOME_SKIPPED };

struct counts {
    size_t tests, failures, errors, skipped;
    double seconds;
};

static void count(struct counts *counts, enum outcome outcome, double ns) {
    counts->tests++;
    counts->failures += outcome == OUTCOME_FAILED;
    counts->errors += outcome == OUTCOME_ERROR;
    counts->skipped += outcome == OUTCOME_SKIPPED;
    counts->seconds += isfinite(ns) ? ns / 1e9 : 0.0;
}

/// Writes a time in seconds, never with an exponent: some readers take plain digits only.
static void put_seconds(FILE *out, double ns) {
    (void)fprintf(out, "%.12f", isfinite(ns) && ns < 1e24 ? ns / 1e9 : 0.0);
}

static void put_counts(FILE *out, const struct counts *counts) {
    (void)fprintf(out, "tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"",
                  counts->tests, counts->failures, counts->errors, counts->skipped);
    put_seconds(out, counts->seconds * 1e9);
    (void)fputc('"', out);
}

static void put_head(FILE *out, const char *suite, const struct counts *counts) {
    (void)fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"mhabench\" ", out);
    put_counts(out, counts);
    (void)fputs(">\n<testsuite name=\"", out);
    text_put_xml(out, suite);
    (void)fputs("\" ", out);
    put_counts(out, counts);
    (void)fputs(">\n", out);
}

static void put_tail(FILE *out) {
    (void)fputs("</testsuite>\n</testsuites>\n", out);
}

/// Begins a test case, up to its content.
static void put_case(FILE *out, const char *kernel, const char *name, double ns) {
    (void)fputs("<testcase classname=\"", out);
    text_put_xml(out, kernel[0] != '\0' ? kernel : "benchmark");
    (void)fputs("\" name=\"", out);
    text_put_xml(out, text_shape(name, kernel));
    (void)fputs("\" time=\"", out);
    put_seconds(out, ns);
    (void)fputs("\">", out);
}

static enum outcome outcome_of(enum comparison_verdict verdict, enum comparison_gate gate) {
    switch (verdict) {
        case COMPARISON_SLOWER:
        case COMPARISON_MISSING:
            return OUTCOME_FAILED;
        case COMPARISON_ERROR:
            return OUTCOME_ERROR;
        case COMPARISON_INCONCLUSIVE:
            return gate == GATE_INCONCLUSIVE ? OUTCOME_FAILED : OUTCOME_SKIPPED;
        case COMPARISON_SAME:
        case COMPARISON_FASTER:
        case COMPARISON_ENV_DRIFT:
        case COMPARISON_NEW:
            return OUTCOME_PASSED;
    }
    return OUTCOME_ERROR;
}

static const char *const elements[] = {
    [OUTCOME_PASSED] = "system-out",
    [OUTCOME_FAILED] = "failure",
    [OUTCOME_ERROR] = "error",
    [OUTCOME_SKIPPED] = "skipped",
};

/// Begins the element that tells the outcome, with its message; system-out has no attributes.
static void put_outcome(FILE *out, enum outcome outcome, const char *type, const char *message) {
    (void)fprintf(out, "<%s", elements[outcome]);
    if (outcome == OUTCOME_FAILED || outcome == OUTCOME_ERROR) {
        (void)fputs(" type=\"", out);
        text_put_xml(out, type);
        (void)fputc('"', out);
    }
    if (outcome != OUTCOME_PASSED) {
        (void)fputs(" message=\"", out);
        text_put_xml(out, message);
        (void)fputc('"', out);
    }
    (void)fputc('>', out);
}

static void put_comparison(FILE *out, const struct comparison_report *report,
                           const struct comparison *row, enum comparison_gate gate) {
    char change[TEXT_NUMBER_BYTES], interval[TEXT_INTERVAL_BYTES], least[TEXT_NUMBER_BYTES];
    char base[TEXT_NUMBER_BYTES], now[TEXT_NUMBER_BYTES], floor[TEXT_NUMBER_BYTES];
    char message[512];
    text_change(change, row->change);
    text_interval(interval, row->low, row->high);
    text_change(least, row->smallest_effect);
    text_change(floor, report->floor);
    text_time(base, row->base_ns);
    text_time(now, row->new_ns);
    const enum outcome outcome = outcome_of(row->verdict, gate);
    if (isfinite(row->change)) {
        (void)snprintf(message, sizeof(message), "%s: %s (%s), floor %s",
                       comparison_text(row->verdict), change, interval, floor + 1);
    } else {
        (void)snprintf(message, sizeof(message), "%s", comparison_text(row->verdict));
    }
    put_case(out, row->kernel, row->name, row->new_ns);
    put_outcome(out, outcome,
                row->verdict == COMPARISON_SLOWER ? "regression" : comparison_text(row->verdict),
                message);
    if (outcome == OUTCOME_PASSED) {
        text_put_xml(out, message);
        (void)fputc('\n', out);
    }
    (void)fprintf(out, "base %s -&gt; new %s; smallest slow-down that would have been seen: %s",
                  base, now, least);
    if (row->old_name != NULL) {
        (void)fputs("\nwas ", out);
        text_put_xml(out, row->old_name);
    }
    if (row->reason != NULL) {
        (void)fputc('\n', out);
        text_put_xml(out, row->reason);
    }
    (void)fprintf(out, "</%s></testcase>\n", elements[outcome]);
}

char *report_junit(const struct comparison_report *report, enum comparison_gate gate) {
    struct counts counts = {0};
    for (size_t i = 0; i < report->count; i++) {
        count(&counts, outcome_of(report->rows[i].verdict, gate), report->rows[i].new_ns);
    }
    struct text text;
    text_begin(&text);
    put_head(text.out, report->command, &counts);
    for (size_t i = 0; i < report->count; i++) {
        put_comparison(text.out, report, &report->rows[i], gate);
    }
    put_tail(text.out);
    return text_end(&text);
}

static enum outcome outcome_of_row(const struct row *row) {
    switch (row->verdict) {
        case VERDICT_PASSED:
            return OUTCOME_PASSED;
        case VERDICT_SKIPPED:
        case VERDICT_UNSUPPORTED:
            return OUTCOME_SKIPPED;
        case VERDICT_FAILED:
        case VERDICT_MISTRUSTED:
        case VERDICT_ACCOUNTING:
            return OUTCOME_FAILED;
        case VERDICT_UNTESTED:
        case VERDICT_CRASHED:
        case VERDICT_TIMEOUT:
            return OUTCOME_ERROR;
    }
    return OUTCOME_ERROR;
}

static double row_ns(const struct row *row) {
    return row_has_time(row) ? row->median_ns : (double)NAN;
}

static void put_result_row(FILE *out, const struct row *row) {
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    const enum outcome outcome = outcome_of_row(row);
    put_case(out, row->kernel, name, row_ns(row));
    if (outcome != OUTCOME_PASSED) {
        put_outcome(out, outcome, verdict_text(row->verdict),
                    row->reason != NULL ? row->reason : verdict_text(row->verdict));
        if (row->repro != NULL) {
            text_put_xml(out, row->repro);
        }
        (void)fprintf(out, "</%s>", elements[outcome]);
    }
    (void)fputs("</testcase>\n", out);
}

char *report_result_junit(const struct result *result) {
    struct counts counts = {0};
    for (size_t i = 0; i < result->count; i++) {
        count(&counts, outcome_of_row(&result->rows[i]), row_ns(&result->rows[i]));
    }
    struct text text;
    text_begin(&text);
    put_head(text.out, "run", &counts);
    for (size_t i = 0; i < result->count; i++) {
        put_result_row(text.out, &result->rows[i]);
    }
    put_tail(text.out);
    return text_end(&text);
}
