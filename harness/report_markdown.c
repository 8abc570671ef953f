/// Markdown for GitHub and GitLab.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "report.h"
#include "report_text.h"

/// Most that one cell, label or note takes, so that no single text crowds out the rest.
enum { NAME_BYTES = 400, REASON_BYTES = 240, LABEL_BYTES = 160, NOTE_BYTES = 400 };

static char *text_of_note(const char *note) {
    struct text text;
    text_begin(&text);
    (void)fputs("- ", text.out);
    text_put_markdown(text.out, note, NOTE_BYTES);
    (void)fputc('\n', text.out);
    return text_end(&text);
}

static char *make_summary(const struct comparison_report *report) {
    char floor[TEXT_NUMBER_BYTES], noise[TEXT_NUMBER_BYTES];
    struct text text;
    text_begin(&text);
    (void)fputs("### mhabench ", text.out);
    text_put_markdown(text.out, report->command, LABEL_BYTES);
    (void)fputs(": ", text.out);
    text_put_counts(text.out, report);
    (void)fputs("\n\nBase: <code>", text.out);
    text_put_markdown(text.out, report->base_label, LABEL_BYTES);
    (void)fputs("</code>, new: <code>", text.out);
    text_put_markdown(text.out, report->new_label, LABEL_BYTES);
    text_change(floor, report->floor);
    (void)fprintf(text.out, "</code>. Floor %s, false discovery rate %.3g%%.", floor + 1,
                  100.0 * report->error_rate);
    if (isfinite(report->noise_floor)) {
        text_change(noise, report->noise_floor);
        (void)fprintf(text.out, " Noise floor %s (rows of the same machine code).", noise + 1);
    }
    (void)fputs("\n\n", text.out);
    return text_end(&text);
}

static char *make_row(const struct comparison *row) {
    char change[TEXT_NUMBER_BYTES], interval[TEXT_INTERVAL_BYTES], least[TEXT_NUMBER_BYTES];
    char base[TEXT_NUMBER_BYTES], now[TEXT_NUMBER_BYTES];
    struct text text;
    text_begin(&text);
    text_change(change, row->change);
    text_interval(interval, row->low, row->high);
    text_change(least, row->smallest_effect);
    text_time(base, row->base_ns);
    text_time(now, row->new_ns);
    (void)fprintf(text.out, "| %s | %s | %s | %s | %s | %s | <code>", comparison_text(row->verdict),
                  change, interval, least, base, now);
    text_put_markdown(text.out, row->name, NAME_BYTES);
    (void)fputs("</code>", text.out);
    if (row->old_name != NULL) {
        (void)fputs("<br>was <code>", text.out);
        text_put_markdown(text.out, row->old_name, NAME_BYTES);
        (void)fputs("</code>", text.out);
    }
    if (row->reason != NULL) {
        (void)fputs("<br>", text.out);
        text_put_markdown(text.out, row->reason, REASON_BYTES);
    }
    (void)fputs(" |\n", text.out);
    return text_end(&text);
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
    }
    free((void *)texts);
}

char *report_markdown(const struct comparison_report *report, size_t max_bytes) {
    const struct comparison **order = text_order(report);
    const size_t count = report->count;
    char **rows = (char **)diag_alloc(calloc(count + 1, sizeof(char *)));
    const char **categories = (const char **)diag_alloc(calloc(count + 1, sizeof(char *)));
    for (size_t i = 0; i < count; i++) {
        rows[i] = make_row(order[i]);
        categories[i] = comparison_text(order[i]->verdict);
    }
    char **notes = (char **)diag_alloc(calloc(report->notes + 1, sizeof(char *)));
    for (size_t i = 0; i < report->notes; i++) {
        notes[i] = text_of_note(report->note[i]);
    }
    char *summary = make_summary(report);
    const struct text_markdown parts = {
        .summary = summary,
        .table_head =
            "\n| verdict | change | interval | sees | base | new | case |\n"
            "|---|--:|--:|--:|--:|--:|---|\n",
        .notes = report->notes,
        .note = notes,
        .count = count,
        .rows = rows,
        .categories = categories,
    };
    char *text = text_markdown(&parts, max_bytes > 0 ? max_bytes : REPORT_SUMMARY_BYTES);
    free(summary);
    free_texts(rows, count);
    free_texts(notes, report->notes);
    free((void *)categories);
    free((void *)order);
    return text;
}

// --- one result
// ----------------------------------------------------------------------------------------

/// What went wrong first, then what has a time, then what was not run.
static int rank_of(const struct row *row) {
    return verdict_exit(row->verdict) != EXIT_DONE ? 0 : row_has_time(row) ? 1 : 2;
}

static int compare_results(const void *a, const void *b) {
    const struct row *x = *(const struct row *const *)a;
    const struct row *y = *(const struct row *const *)b;
    const int order = rank_of(x) - rank_of(y);
    if (order != 0) {
        return order;
    }
    if (rank_of(x) != 1 && x->verdict != y->verdict) {
        return x->verdict < y->verdict ? -1 : 1;
    }
    // In the order of the file, where the rows of a problem stand together.
    return (x > y) - (x < y);
}

static void put_speedup(FILE *out, double speedup) {
    if (isfinite(speedup)) {
        (void)fprintf(out, " %.2f |", speedup);
    } else {
        (void)fputs(" - |", out);
    }
}

static char *make_result_row(const struct row *row) {
    char name[CASE_NAME_BYTES], median[TEXT_NUMBER_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    const bool timed = row_has_time(row);
    struct text text;
    text_begin(&text);
    text_time(median, timed ? row->median_ns : (double)NAN);
    (void)fprintf(text.out, "| %s | %s |", verdict_text(row->verdict), median);
    const double spread = isfinite(row->spread_between) ? row->spread_between : row->spread_within;
    if (timed && isfinite(spread)) {
        (void)fprintf(text.out, " %.1f%% |", 100.0 * spread);
    } else {
        (void)fputs(" - |", text.out);
    }
    if (timed && isfinite(row->gflops)) {
        (void)fprintf(text.out, " %.1f GFLOP/s |", row->gflops);
    } else if (timed && isfinite(row->gbytes_per_s)) {
        (void)fprintf(text.out, " %.1f GB/s |", row->gbytes_per_s);
    } else {
        (void)fputs(" - |", text.out);
    }
    if (timed && isfinite(row->ceiling_share)) {
        (void)fprintf(text.out, " %.0f%% |", 100.0 * row->ceiling_share);
    } else {
        (void)fputs(" - |", text.out);
    }
    put_speedup(text.out, timed ? row->speedup_scalar : (double)NAN);
    put_speedup(text.out, timed ? row->speedup_autovec : (double)NAN);
    put_speedup(text.out, timed ? row->speedup_best_peer : (double)NAN);
    (void)fputs(" <code>", text.out);
    text_put_markdown(text.out, name, NAME_BYTES);
    (void)fputs("</code>", text.out);
    if (row->reason != NULL) {
        (void)fputs("<br>", text.out);
        text_put_markdown(text.out, row->reason, REASON_BYTES);
    }
    (void)fputs(" |\n", text.out);
    return text_end(&text);
}

static char *make_result_summary(const struct result *result) {
    const json_t *own = json_object_get(result->context, "mhabench");
    const char *cpu = json_string_value(json_object_get(json_object_get(own, "machine"), "cpu"));
    const char *date = json_string_value(json_object_get(result->context, "date"));
    struct text text;
    text_begin(&text);
    (void)fprintf(text.out, "### mhabench: %zu %s", result->count,
                  result->count == 1 ? "case" : "cases");
    const char *separator = ": ";
    for (int v = VERDICT_UNTESTED; v <= VERDICT_ACCOUNTING; v++) {
        size_t count = 0;
        for (size_t i = 0; i < result->count; i++) {
            count += result->rows[i].verdict == (enum verdict)v;
        }
        if (count > 0) {
            (void)fprintf(text.out, "%s%zu %s", separator, count, verdict_text((enum verdict)v));
            separator = ", ";
        }
    }
    (void)fputs("\n\n", text.out);
    text_put_markdown(text.out, cpu != NULL ? cpu : "CPU not known", LABEL_BYTES);
    if (date != NULL) {
        (void)fputs(", ", text.out);
        text_put_markdown(text.out, date, LABEL_BYTES);
    }
    (void)fputs("\n", text.out);
    return text_end(&text);
}

char *report_result_markdown(const struct result *result, size_t max_bytes) {
    const size_t count = result->count;
    const struct row **order =
        (const struct row **)diag_alloc(calloc(count + 1, sizeof(struct row *)));
    char **rows = (char **)diag_alloc(calloc(count + 1, sizeof(char *)));
    const char **categories = (const char **)diag_alloc(calloc(count + 1, sizeof(char *)));
    for (size_t i = 0; i < count; i++) {
        order[i] = &result->rows[i];
    }
    qsort((void *)order, count, sizeof(struct row *), compare_results);
    for (size_t i = 0; i < count; i++) {
        rows[i] = make_result_row(order[i]);
        categories[i] = verdict_text(order[i]->verdict);
    }
    char *summary = make_result_summary(result);
    const struct text_markdown parts = {
        .summary = summary,
        .table_head =
            "\n| verdict | median | ± | rate | of roof | × scalar | × autovec | × peer | "
            "case |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n",
        .count = count,
        .rows = rows,
        .categories = categories,
    };
    char *text = text_markdown(&parts, max_bytes > 0 ? max_bytes : REPORT_SUMMARY_BYTES);
    free(summary);
    free_texts(rows, count);
    free((void *)categories);
    free((void *)order);
    return text;
}
