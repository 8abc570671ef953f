/// JSON for github-action-benchmark, tool customSmallerIsBetter: an array of {name, unit, value,
/// range, extra}. All values are in ns: the action compares them as they are, whatever the unit.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "report.h"
#include "report_text.h"

static void append(json_t *array, const char *name, double ns, const char *range, char *extra) {
    json_t *entry =
        json_pack("{s:s, s:s, s:f, s:s*, s:s}", "name", name, "unit", "ns/iter", "value", ns,
                  "range", range[0] != '\0' ? range : NULL, "extra", extra);
    free(extra);
    if (json_array_append_new(array, diag_alloc(entry)) != 0) {
        diag_alloc(NULL);
    }
}

static bool is_time(double ns) {
    return isfinite(ns) && ns > 0.0;
}

json_t *report_gab(const struct comparison_report *report) {
    json_t *array = diag_alloc(json_array());
    for (size_t i = 0; i < report->count; i++) {
        const struct comparison *row = &report->rows[i];
        char change[TEXT_NUMBER_BYTES], range[64] = "";
        if (!is_time(row->new_ns)) {
            continue;
        }
        struct text text;
        text_begin(&text);
        text_change(change, row->change);
        if (isfinite(row->low) && isfinite(row->high)) {
            (void)snprintf(range, sizeof(range), "± %.2f%%", 50.0 * (row->high - row->low));
        }
        (void)fprintf(text.out, "verdict: %s\nchange: %s\nlaunches: %zu",
                      comparison_text(row->verdict), change, row->launches);
        append(array, row->name, row->new_ns, range, text_end(&text));
    }
    return array;
}

static size_t count_samples(const struct row *row) {
    size_t count = 0;
    for (size_t i = 0; i < row->launches; i++) {
        count += row->samples[i].count;
    }
    return count;
}

json_t *report_result_gab(const struct result *result) {
    json_t *array = diag_alloc(json_array());
    for (size_t i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        char name[CASE_NAME_BYTES], range[64] = "";
        if (!row_has_time(row)) {
            continue;
        }
        problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
        struct text text;
        text_begin(&text);
        const double spread =
            isfinite(row->spread_between) ? row->spread_between : row->spread_within;
        if (isfinite(spread)) {
            (void)snprintf(range, sizeof(range), "± %.2f%%", 100.0 * spread);
        }
        (void)fprintf(text.out, "launches: %zu\nsamples: %zu\nthreads: %d", row->launches,
                      count_samples(row), row->threads);
        if (isfinite(row->gflops)) {
            (void)fprintf(text.out, "\nGFLOP/s: %.4g", row->gflops);
        }
        if (isfinite(row->gbytes_per_s)) {
            (void)fprintf(text.out, "\nGB/s: %.4g", row->gbytes_per_s);
        }
        append(array, name, row->median_ns, range, text_end(&text));
    }
    return array;
}
