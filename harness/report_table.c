/// The terminal table of a comparison.
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "report_text.h"

/// SGR codes of ECMA-48.
static const char *color_of(enum comparison_verdict verdict) {
    switch (verdict) {
        case COMPARISON_SLOWER:
        case COMPARISON_ERROR:
        case COMPARISON_MISSING:
            return "\033[1;31m";
        case COMPARISON_FASTER:
            return "\033[32m";
        case COMPARISON_INCONCLUSIVE:
        case COMPARISON_ENV_DRIFT:
            return "\033[33m";
        case COMPARISON_SAME:
        case COMPARISON_NEW:
            return "";
    }
    return "";
}

static void print_row(FILE *out, const struct comparison *row, bool color) {
    char change[TEXT_NUMBER_BYTES], interval[TEXT_INTERVAL_BYTES], least[TEXT_NUMBER_BYTES];
    char base[TEXT_NUMBER_BYTES], now[TEXT_NUMBER_BYTES];
    text_change(change, row->change);
    text_interval(interval, row->low, row->high);
    text_change(least, row->smallest_effect);
    text_time(base, row->base_ns);
    text_time(now, row->new_ns);
    const char *code = color ? color_of(row->verdict) : "";
    (void)fprintf(out, "%s%-12s%s %9s  %22s  %9s  %9s  %9s  ", code, comparison_text(row->verdict),
                  code[0] != '\0' ? "\033[0m" : "", change, interval, least, base, now);
    text_put_plain(out, row->name);
    if (row->old_name != NULL) {
        (void)fputs("\n    was ", out);
        text_put_plain(out, row->old_name);
    }
    if (row->reason != NULL) {
        (void)fputs("\n    ", out);
        text_put_plain(out, row->reason);
    }
    (void)fputc('\n', out);
}

static void print_foot(FILE *out, const struct comparison_report *report) {
    char floor[TEXT_NUMBER_BYTES], noise[TEXT_NUMBER_BYTES];
    text_change(floor, report->floor);
    (void)fputs("\nsees: the smallest slow-down that the row's data would have shown\n", out);
    (void)fprintf(out, "floor: changes up to %s are not worth a verdict\n", floor + 1);
    if (isfinite(report->noise_floor)) {
        text_change(noise, report->noise_floor);
        (void)fprintf(out, "noise floor: up to %s between rows of the same machine code\n",
                      noise + 1);
    }
    (void)fprintf(out, "false discovery rate: %.3g%%; intervals: %.3g%%\n",
                  100.0 * report->error_rate, 100.0 * (1.0 - report->error_rate));
    (void)fputs("method: ", out);
    text_put_plain(out, report->method);
    (void)fputc('\n', out);
    for (size_t i = 0; i < report->notes; i++) {
        (void)fputs("note: ", out);
        text_put_plain(out, report->note[i]);
        (void)fputc('\n', out);
    }
    (void)fputc('\n', out);
    text_put_counts(out, report);
    (void)fputc('\n', out);
}

void report_table(const struct comparison_report *report, FILE *out, bool color) {
    struct text text;
    text_locale_begin(&text);
    (void)fputs("base: ", out);
    text_put_plain(out, report->base_label);
    (void)fputs("\nnew:  ", out);
    text_put_plain(out, report->new_label);
    (void)fprintf(out, "\n\n%-12s %9s  %22s  %9s  %9s  %9s  %s\n", "verdict", "change", "interval",
                  "sees", "base", "new", "case");
    const struct comparison **order = text_order(report);
    for (size_t i = 0; i < report->count; i++) {
        print_row(out, order[i], color);
    }
    free((void *)order);
    print_foot(out, report);
    text_locale_end(&text);
}
