/// `mhabench history`: the results of many commits in one file, and the steps between them.
#include <string.h>

#include "commands.h"
#include "diag.h"

#ifdef MHA_HAVE_SQLITE

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "changepoint.h"
#include "comparison.h"
#include "history.h"
#include "history_judge.h"
#include "report.h"
#include "report_text.h"
#include "sparkline.h"
#include "stats.h"

/// Grows by one with every change that an old reader of the JSON would misread.
enum { HISTORY_JSON_VERSION = 1 };

/// Results that `show` prints of each series where --last is not given.
enum { SHOWN_RESULTS = 20 };

enum action { ACTION_ADD, ACTION_SHOW, ACTION_CHECK, ACTION_EXPORT, ACTION_ACK };

static const char *action_word(size_t index) {
    static const char *const words[] = {"add", "show", "check", "export", "ack"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

// --- what the command line means

/// Sets of actions, one bit each.
#define ON(action) (1u << (action))

/// Refuses options that the action has no use for.
static int check_options(const struct options *options, enum action action) {
    const struct {
        const char *name;
        bool given;
        unsigned actions;
    } uses[] = {
        {"case", options->case_glob != NULL, ~ON(ACTION_ADD)},
        {"last", options->last != 0, ON(ACTION_SHOW)},
        {"format", options->format != NULL, ON(ACTION_EXPORT)},
        {"commit", options->commit != NULL, ON(ACTION_ACK)},
        {"json", options->json, ON(ACTION_SHOW) | ON(ACTION_CHECK) | ON(ACTION_EXPORT)},
        {"out", options->out != NULL, ON(ACTION_CHECK) | ON(ACTION_EXPORT)},
        {"markdown", options->markdown, ON(ACTION_CHECK)},
        {"junit", options->junit, ON(ACTION_CHECK)},
        {"github-action-benchmark", options->gab, ON(ACTION_CHECK)},
        {"max-chars", options->max_chars != 0, ON(ACTION_CHECK)},
    };
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        if (uses[i].given && (uses[i].actions & ON(action)) == 0) {
            diag_error("--%s: `history %s` does not take it", uses[i].name, action_word(action));
            return EXIT_USAGE;
        }
    }
    if (options->db == NULL) {
        diag_error("history %s: which file? Give it as in --db history.db", action_word(action));
        return EXIT_USAGE;
    }
    if (action == ACTION_EXPORT && options->json && options->format != NULL &&
        strcmp(options->format, "json") != 0) {
        diag_error("--json and --format %s: give one of them", options->format);
        return EXIT_USAGE;
    }
    if (action == ACTION_ACK && (options->case_glob == NULL || options->commit == NULL)) {
        diag_error(
            "history ack: which step? Name it as `history check` does, with --case and --commit");
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int find_action(const struct options *options, enum action *action) {
    char all[128];
    words_join(all, sizeof(all), action_word);
    if (options->operands.count == 0) {
        diag_error("history: what is to be done? One of %s", all);
        return EXIT_USAGE;
    }
    const char *word = options->operands.items[0];
    for (size_t i = 0; action_word(i) != NULL; i++) {
        if (strcmp(word, action_word(i)) == 0) {
            *action = (enum action)i;
            const size_t files = options->operands.count - 1;
            if (*action == ACTION_ADD && files == 0) {
                diag_error(
                    "history add: which results? Write it as in mhabench history add "
                    "RESULT.json --db history.db");
                return EXIT_USAGE;
            }
            if (*action != ACTION_ADD && files > 0) {
                diag_error("'%.200s': `history %s` takes options only", options->operands.items[1],
                           word);
                return EXIT_USAGE;
            }
            return check_options(options, *action);
        }
    }
    const char *nearest = words_nearest(word, action_word);
    if (nearest != NULL) {
        diag_error("'%.200s': unknown action, did you mean '%s'? Known are %s", word, nearest, all);
    } else {
        diag_error("'%.200s': unknown action of history; known are %s", word, all);
    }
    return EXIT_USAGE;
}

/// Gets the series that --case names; none at all is an error.
static int select_series(struct history *history, const struct options *options, size_t last,
                         struct history_list *list) {
    const int code = history_select(history, options->case_glob, last, list);
    if (code == EXIT_DONE && list->count == 0 && options->case_glob != NULL) {
        diag_error(
            "--case '%.200s': no case in '%s' matches; `mhabench history show --db FILE` "
            "lists them",
            options->case_glob, options->db);
        return EXIT_USAGE;
    }
    if (code == EXIT_DONE && list->count == 0) {
        diag_error("history '%s': it has no results; `mhabench history add` adds some",
                   options->db);
        return EXIT_USAGE;
    }
    return code;
}

// --- output

static void put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) {
        diag_alloc(NULL);
    }
}

static void append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) {
        diag_alloc(NULL);
    }
}

static json_t *real_or_null(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

/// Makes a string; what SQLite holds may have been put there by others and be no UTF-8.
static json_t *text_json(const char *text) {
    json_t *json = json_string(text);
    return json != NULL ? json : json_null();
}

static void write_time(char text[HISTORY_LABEL_BYTES], int64_t seconds) {
    const time_t at = (time_t)seconds;
    struct tm utc = {0};
    if (gmtime_r(&at, &utc) == NULL ||
        strftime(text, HISTORY_LABEL_BYTES, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        (void)snprintf(text, HISTORY_LABEL_BYTES, "%lld", (long long)seconds);
    }
}

static json_t *time_json(int64_t seconds) {
    char text[HISTORY_LABEL_BYTES];
    write_time(text, seconds);
    return json_string(text);
}

static json_t *point_json(const struct history_point *point) {
    json_t *json = diag_alloc(json_object());
    put(json, "started", time_json(point->started));
    put(json, "commit", text_json(point->commit));
    put(json, "compiler", text_json(point->compiler));
    put(json, "verdict", json_string(verdict_text(point->verdict)));
    put(json, "median_ns", real_or_null(point->median_ns));
    put(json, "spread_between", real_or_null(point->spread_between));
    put(json, "launches", json_integer((json_int_t)point->launches));
    put(json, "code_hash", text_json(point->code_hash));
    return json;
}

/// Makes what every JSON of a series begins with.
static json_t *series_json(const struct history_series *series) {
    json_t *json = diag_alloc(json_object());
    put(json, "case", text_json(series->name));
    put(json, "machine", text_json(series->machine));
    put(json, "fingerprint", json_string(series->fingerprint));
    return json;
}

static json_t *document(const char *command) {
    json_t *json = diag_alloc(json_object());
    put(json, "history_version", json_integer(HISTORY_JSON_VERSION));
    put(json, "command", json_string(command));
    return json;
}

static void print_heading(FILE *out, const struct history_series *series) {
    text_put_plain(out, series->name);
    (void)fputs("\n  on ", out);
    text_put_plain(out, series->machine[0] != '\0' ? series->machine : "an unknown processor");
    (void)fprintf(out, " [%s]", series->fingerprint);
}

/// Says that another compiler made the code, which explains many a step.
static void print_compilers(FILE *out, const struct history_point *before,
                            const struct history_point *after) {
    if (strcmp(before->compiler, after->compiler) != 0) {
        (void)fputs("  [compiler: ", out);
        text_put_plain(out, before->compiler);
        (void)fputs(" -> ", out);
        text_put_plain(out, after->compiler);
        (void)fputs("]", out);
    }
}

// --- add

static int add(const struct options *options) {
    struct history *history = NULL;
    struct history_added added;
    int code = history_open(options->db, HISTORY_CREATE, &history);
    if (code == EXIT_DONE) {
        code =
            history_add(history, &options->operands.items[1], options->operands.count - 1, &added);
    }
    history_close(history);
    if (code == EXIT_DONE) {
        diag_note("%zu results added to '%s'%s%s", added.added, options->db,
                  added.present > 0 ? "; what was there already is not added again" : "",
                  added.untested > 0 ? "; untested rows are left out" : "");
    }
    return code;
}

// --- show

static void print_point(FILE *out, const struct history_point *point, double previous_ns) {
    char when[HISTORY_LABEL_BYTES], median[TEXT_NUMBER_BYTES], change[TEXT_NUMBER_BYTES];
    char spread[TEXT_NUMBER_BYTES];
    write_time(when, point->started);
    text_time(median, point->median_ns);
    text_change(change, point->median_ns / previous_ns - 1.0);
    text_change(spread, point->spread_between);
    (void)fprintf(out, "  %-20s  %10s  %9s  %7s  %-11s  ", when, median, change,
                  spread[0] == '+' ? spread + 1 : spread, verdict_text(point->verdict));
    text_put_plain(out, point->commit[0] != '\0' ? point->commit : "-");
    (void)fputs("  ", out);
    text_put_plain(out, point->compiler);
    (void)fputc('\n', out);
}

static void print_series(FILE *out, const struct history_series *series, bool unicode) {
    double *times = diag_alloc(calloc(series->count + 1, sizeof(*times)));
    for (size_t i = 0; i < series->count; i++) {
        times[i] = series->points[i].median_ns;
    }
    char *bars = sparkline(times, series->count, unicode);
    print_heading(out, series);
    (void)fprintf(out, "\n  |%s|\n  %-20s  %10s  %9s  %7s  %-11s  %s\n", bars, "started", "median",
                  "change", "+-", "verdict", "commit, compiler");
    double previous_ns = UNKNOWN;
    for (size_t i = 0; i < series->count; i++) {
        print_point(out, &series->points[i], previous_ns);
        if (isfinite(times[i])) {
            previous_ns = times[i];
        }
    }
    free(bars);
    free(times);
}

static json_t *show_json(const struct history_list *list) {
    json_t *json = document("show");
    json_t *all = diag_alloc(json_array());
    for (size_t i = 0; i < list->count; i++) {
        json_t *series = series_json(&list->series[i]);
        json_t *points = diag_alloc(json_array());
        for (size_t p = 0; p < list->series[i].count; p++) {
            append(points, point_json(&list->series[i].points[p]));
        }
        put(series, "results", points);
        append(all, series);
    }
    put(json, "series", all);
    return json;
}

static int show(const struct options *options) {
    struct history *history = NULL;
    struct history_list list = {0};
    int code = history_open(options->db, HISTORY_EXISTING, &history);
    if (code == EXIT_DONE) {
        code = select_series(history, options, options->last != 0 ? options->last : SHOWN_RESULTS,
                             &list);
    }
    if (code == EXIT_DONE && options->json) {
        code = report_write_json(show_json(&list), options);
    } else if (code == EXIT_DONE) {
        struct text text;
        text_begin(&text);
        for (size_t i = 0; i < list.count; i++) {
            (void)fputs(i > 0 ? "\n" : "", text.out);
            print_series(text.out, &list.series[i], sparkline_unicode(STDOUT_FILENO));
        }
        code = report_write_text(text_end(&text), options);
    }
    history_free(&list);
    history_close(history);
    return code;
}

// --- check

/// All series with what was found in them.
struct findings {
    size_t count;
    struct history_judgement *judgements;
    size_t steps, regressions, failures;
};

static int judge(struct history *history, const struct history_list *list,
                 struct findings *findings) {
    *findings = (struct findings){0};
    findings->judgements = diag_alloc(calloc(list->count + 1, sizeof(*findings->judgements)));
    for (size_t i = 0; i < list->count; i++) {
        struct history_judgement *judgement = &findings->judgements[i];
        if (history_judge(history, &list->series[i], judgement) != EXIT_DONE) {
            return EXIT_USAGE;
        }
        findings->count++;
        findings->steps += judgement->step_count;
        findings->regressions += history_regression(judgement) != NULL;
        findings->failures += history_failure(judgement) != NULL;
    }
    return EXIT_DONE;
}

static void free_findings(struct findings *findings) {
    for (size_t i = 0; i < findings->count; i++) {
        history_judgement_free(&findings->judgements[i]);
    }
    free(findings->judgements);
}

static double change_of(const struct history_step *step) {
    return step->after_ns / step->before_ns - 1.0;
}

static const char *direction_of(const struct history_step *step) {
    return step->after_ns > step->before_ns ? "SLOWER" : "FASTER";
}

static void print_step(FILE *out, const struct history_step *step) {
    char change[TEXT_NUMBER_BYTES], before[TEXT_NUMBER_BYTES], after[TEXT_NUMBER_BYTES];
    char label[3][HISTORY_LABEL_BYTES];
    text_change(change, change_of(step));
    text_time(before, step->before_ns);
    text_time(after, step->after_ns);
    history_label(label[0], step->before.first);
    history_label(label[1], step->after.first);
    history_label(label[2], step->found.first);
    (void)fprintf(out, "  %s %s  %s -> %s  between ", direction_of(step), change, before, after);
    text_put_plain(out, label[0]);
    (void)fputs(" and ", out);
    text_put_plain(out, label[1]);
    (void)fputs(", seen at ", out);
    text_put_plain(out, label[2]);
    print_compilers(out, step->before.first, step->after.first);
    (void)fputs(step->acknowledged ? "  [acknowledged]\n" : "\n", out);
}

static void print_change(FILE *out, const struct history_change *change) {
    char label[HISTORY_LABEL_BYTES];
    history_label(label, change->after);
    (void)fprintf(out, "  %s -> %s  at ", verdict_text(change->before->verdict),
                  verdict_text(change->after->verdict));
    text_put_plain(out, label);
    print_compilers(out, change->before, change->after);
    (void)fputs(change->acknowledged ? "  [acknowledged]\n" : "\n", out);
}

/// Prints a word so that a shell takes it for one.
static void print_quoted(FILE *out, const char *word) {
    (void)fputc('\'', out);
    for (const char *quote = NULL; (quote = strchr(word, '\'')) != NULL; word = quote + 1) {
        char *part = diag_alloc(strndup(word, (size_t)(quote - word)));
        text_put_plain(out, part);
        (void)fputs("'\\''", out);
        free(part);
    }
    text_put_plain(out, word);
    (void)fputc('\'', out);
}

static void print_advice(FILE *out, const struct options *options, const char *name,
                         const struct history_point *after) {
    char label[HISTORY_LABEL_BYTES];
    history_label(label, after);
    (void)fputs("  meant to be so? mhabench history ack --db ", out);
    print_quoted(out, options->db);
    (void)fputs(" --case ", out);
    print_quoted(out, name);
    (void)fputs(" --commit ", out);
    print_quoted(out, label);
    (void)fputc('\n', out);
}

static void print_judgement(FILE *out, const struct options *options,
                            const struct history_judgement *judgement) {
    if (judgement->step_count + judgement->change_count == 0) {
        return;
    }
    print_heading(out, judgement->series);
    (void)fprintf(out, ", %zu commits\n", judgement->commits);
    for (size_t i = 0; i < judgement->step_count; i++) {
        print_step(out, &judgement->steps[i]);
    }
    for (size_t i = 0; i < judgement->change_count; i++) {
        print_change(out, &judgement->changes[i]);
    }
    const struct history_step *regression = history_regression(judgement);
    const struct history_change *failure = history_failure(judgement);
    if (regression != NULL) {
        print_advice(out, options, judgement->series->name, regression->after.first);
    }
    if (failure != NULL) {
        print_advice(out, options, judgement->series->name, failure->after);
    }
    (void)fputc('\n', out);
}

static int check_text(const struct options *options, const struct findings *findings) {
    struct text text;
    text_begin(&text);
    size_t few = 0;
    for (size_t i = 0; i < findings->count; i++) {
        print_judgement(text.out, options, &findings->judgements[i]);
        few += findings->judgements[i].commits < CHANGEPOINT_QUIET + CHANGEPOINT_LEAST;
    }
    (void)fprintf(text.out,
                  "series: %zu, steps: %zu; not acknowledged: slow-downs %zu, failures %zu\n",
                  findings->count, findings->steps, findings->regressions, findings->failures);
    if (few > 0) {
        (void)fprintf(text.out,
                      "series of fewer than %d commits, in which only steps that last show: %zu\n",
                      CHANGEPOINT_QUIET + CHANGEPOINT_LEAST, few);
    }
    (void)fprintf(text.out, "method: %s\n", changepoint_method());
    return report_write_text(text_end(&text), options);
}

static json_t *label_json(const struct history_point *point) {
    char label[HISTORY_LABEL_BYTES];
    history_label(label, point);
    return text_json(label);
}

static json_t *step_json(const struct history_step *step) {
    json_t *json = diag_alloc(json_object());
    put(json, "direction", json_string(direction_of(step)));
    put(json, "change", real_or_null(change_of(step)));
    put(json, "before_ns", real_or_null(step->before_ns));
    put(json, "after_ns", real_or_null(step->after_ns));
    put(json, "last_before", label_json(step->before.first));
    put(json, "first_after", label_json(step->after.first));
    put(json, "first_after_started", time_json(step->after.first->started));
    put(json, "seen_at", label_json(step->found.first));
    put(json, "compiler_before", text_json(step->before.first->compiler));
    put(json, "compiler_after", text_json(step->after.first->compiler));
    put(json, "acknowledged", json_boolean(step->acknowledged));
    return json;
}

static json_t *change_json(const struct history_change *change) {
    json_t *json = diag_alloc(json_object());
    put(json, "before", json_string(verdict_text(change->before->verdict)));
    put(json, "after", json_string(verdict_text(change->after->verdict)));
    put(json, "commit", label_json(change->after));
    put(json, "started", time_json(change->after->started));
    put(json, "acknowledged", json_boolean(change->acknowledged));
    return json;
}

static json_t *check_json(const struct findings *findings) {
    json_t *json = document("check");
    json_t *all = diag_alloc(json_array());
    for (size_t i = 0; i < findings->count; i++) {
        const struct history_judgement *judgement = &findings->judgements[i];
        json_t *series = series_json(judgement->series);
        json_t *steps = diag_alloc(json_array()), *changes = diag_alloc(json_array());
        for (size_t s = 0; s < judgement->step_count; s++) {
            append(steps, step_json(&judgement->steps[s]));
        }
        for (size_t c = 0; c < judgement->change_count; c++) {
            append(changes, change_json(&judgement->changes[c]));
        }
        put(series, "commits", json_integer((json_int_t)judgement->commits));
        put(series, "median_ns", real_or_null(judgement->median_ns));
        put(series, "regression", json_boolean(history_regression(judgement) != NULL));
        put(series, "failure", json_boolean(history_failure(judgement) != NULL));
        put(series, "steps", steps);
        put(series, "verdict_changes", changes);
        append(all, series);
    }
    put(json, "method", json_string(changepoint_method()));
    put(json, "regressions", json_integer((json_int_t)findings->regressions));
    put(json, "failures", json_integer((json_int_t)findings->failures));
    put(json, "series", all);
    return json;
}

/// Makes one row of a report: what the newest step says.
static struct comparison make_row(const struct history_judgement *judgement) {
    const struct history_series *series = judgement->series;
    const struct history_point *newest = &series->points[series->count - 1];
    struct comparison row = {
        .name = diag_alloc(strdup(series->name)),
        .kernel = diag_alloc(strdup("")),
        .op = diag_alloc(strndup(series->name, strcspn(series->name, "/"))),
        .base_ns = judgement->median_ns,
        .new_ns = judgement->median_ns,
        .change = UNKNOWN,
        .low = UNKNOWN,
        .high = UNKNOWN,
        .smallest_effect = UNKNOWN,
        .launches = newest->launches,
        .verdict = COMPARISON_SAME,
    };
    char label[HISTORY_LABEL_BYTES], reason[2 * HISTORY_LABEL_BYTES + 64] = "";
    if (history_failure(judgement) != NULL) {
        history_label(label, history_failure(judgement)->after);
        (void)snprintf(reason, sizeof(reason), "%s since %s", verdict_text(newest->verdict), label);
        row.verdict = COMPARISON_ERROR;
    } else if (judgement->step_count > 0) {
        const struct history_step *step = &judgement->steps[judgement->step_count - 1];
        char before[HISTORY_LABEL_BYTES];
        history_label(before, step->before.first);
        history_label(label, step->after.first);
        row.base_ns = step->before_ns;
        row.new_ns = step->after_ns;
        row.change = change_of(step);
        (void)snprintf(reason, sizeof(reason), "step between %s and %s%s", before, label,
                       step->acknowledged ? ", acknowledged" : "");
        if (!step->acknowledged) {
            row.verdict = step->after_ns > step->before_ns ? COMPARISON_SLOWER : COMPARISON_FASTER;
        }
    } else if (judgement->commits < CHANGEPOINT_QUIET + CHANGEPOINT_LEAST) {
        (void)snprintf(reason, sizeof(reason), "only %zu commits with a time", judgement->commits);
        row.verdict = COMPARISON_INCONCLUSIVE;
    }
    row.reason = reason[0] != '\0' ? diag_alloc(strdup(reason)) : NULL;
    return row;
}

/// Prints the newest step of every series in a form that all comparisons share.
static int check_report(const struct options *options, const struct findings *findings) {
    struct comparison_report report = {
        .command = diag_alloc(strdup("history")),
        .base_label = diag_alloc(strdup("level before")),
        .new_label = diag_alloc(strdup("level now")),
        .error_rate = 1e-3,
        .noise_floor = UNKNOWN,
        .method = diag_alloc(strdup(changepoint_method())),
        .rows = diag_alloc(calloc(findings->count + 1, sizeof(*report.rows))),
    };
    for (size_t i = 0; i < findings->count; i++) {
        report.rows[report.count++] = make_row(&findings->judgements[i]);
    }
    // The reports have a place for one rate only.
    report.note = diag_alloc(calloc(1, sizeof(*report.note)));
    report.note[report.notes++] =
        diag_alloc(strdup("The rate is that of false steps per commit of a case."));
    const int code = report_print(&report, options);
    comparison_free(&report);
    return code;
}

static int check(const struct options *options) {
    struct history *history = NULL;
    struct history_list list = {0};
    struct findings findings = {0};
    int code = history_open(options->db, HISTORY_EXISTING, &history);
    if (code == EXIT_DONE) {
        code = select_series(history, options, 0, &list);
    }
    if (code == EXIT_DONE) {
        code = judge(history, &list, &findings);
    }
    if (code == EXIT_DONE) {
        if (options->json) {
            code = report_write_json(check_json(&findings), options);
        } else if (options->markdown || options->junit || options->gab) {
            code = check_report(options, &findings);
        } else {
            code = check_text(options, &findings);
        }
    }
    if (code == EXIT_DONE && findings.regressions + findings.failures > 0) {
        code = EXIT_FOUND;
    }
    free_findings(&findings);
    history_free(&list);
    history_close(history);
    return code;
}

// --- ack

/// What `ack` has found.
struct acknowledging {
    const char *commit;               ///< As the user gave it.
    char label[HISTORY_LABEL_BYTES];  ///< The first that it names; "" when none yet.
    size_t done;
};

/// Gets the result behind the step or, after these, the change of verdict of this index.
static const struct history_point *point_after(const struct history_judgement *judgement,
                                               size_t index) {
    return index < judgement->step_count ? judgement->steps[index].after.first
                                         : judgement->changes[index - judgement->step_count].after;
}

/// Acknowledges what one series has at the commit.
static int acknowledge(struct history *history, const struct history_judgement *judgement,
                       struct acknowledging *what) {
    const size_t length = strlen(what->commit);
    const size_t all = judgement->step_count + judgement->change_count;
    for (size_t i = 0; i < all; i++) {
        char label[HISTORY_LABEL_BYTES];
        history_label(label, point_after(judgement, i));
        // The first digits name a commit as well as all of them.
        if (strncmp(label, what->commit, length) != 0) {
            continue;
        }
        if (what->label[0] != '\0' && strcmp(what->label, label) != 0) {
            diag_error("--commit '%.200s': both '%s' and '%s' begin so; give more of it",
                       what->commit, what->label, label);
            return EXIT_USAGE;
        }
        (void)snprintf(what->label, sizeof(what->label), "%s", label);
        if (history_acknowledge(history, judgement->series, label) != EXIT_DONE) {
            return EXIT_USAGE;
        }
        what->done++;
    }
    return EXIT_DONE;
}

static int ack(const struct options *options) {
    struct history *history = NULL;
    struct history_list list = {0};
    struct findings findings = {0};
    struct acknowledging what = {.commit = options->commit};
    int code = history_open(options->db, HISTORY_EXISTING, &history);
    if (code == EXIT_DONE) {
        code = select_series(history, options, 0, &list);
    }
    if (code == EXIT_DONE) {
        code = judge(history, &list, &findings);
    }
    if (code == EXIT_DONE) {
        code = history_begin(history);
        for (size_t i = 0; i < findings.count && code == EXIT_DONE; i++) {
            code = acknowledge(history, &findings.judgements[i], &what);
        }
        code = history_finish(history, code);
    }
    if (code == EXIT_DONE && what.done == 0) {
        diag_error(
            "--commit '%.200s': no step or change of verdict of these cases is at it; "
            "`mhabench history check` names them",
            options->commit);
        code = EXIT_USAGE;
    } else if (code == EXIT_DONE) {
        diag_note("%zu acknowledged at %s", what.done, what.label);
    }
    free_findings(&findings);
    history_free(&list);
    history_close(history);
    return code;
}

// --- export

/// Writes a field as RFC 4180 has it.
static void put_csv(FILE *out, const char *text) {
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text != '\0'; text++) {
        (void)fputs(*text == '"' ? "\"" : "", out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

static void put_csv_real(FILE *out, double value) {
    enum { DIGITS = 17 };  // DBL_DECIMAL_DIG: reads back as the same double
    if (isfinite(value)) {
        (void)fprintf(out, "%.*g", DIGITS, value);
    }
}

static void put_csv_row(FILE *out, const struct history_series *series,
                        const struct history_point *point) {
    char when[HISTORY_LABEL_BYTES];
    write_time(when, point->started);
    const char *const fields[] = {series->name,  series->machine, series->fingerprint,         when,
                                  point->commit, point->compiler, verdict_text(point->verdict)};
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        put_csv(out, fields[i]);
        (void)fputc(',', out);
    }
    put_csv_real(out, point->median_ns);
    (void)fputc(',', out);
    put_csv_real(out, point->spread_between);
    (void)fprintf(out, ",%zu,", point->launches);
    put_csv(out, point->code_hash);
    (void)fputs("\r\n", out);
}

static int export_csv(const struct options *options, const struct history_list *list) {
    struct text text;
    text_begin(&text);
    (void)fputs(
        "case,machine,fingerprint,started,commit,compiler,verdict,median_ns,"
        "spread_between,launches,code_hash\r\n",
        text.out);
    for (size_t i = 0; i < list->count; i++) {
        for (size_t p = 0; p < list->series[i].count; p++) {
            put_csv_row(text.out, &list->series[i], &list->series[i].points[p]);
        }
    }
    return report_write_text(text_end(&text), options);
}

static int export_all(const struct options *options) {
    struct history *history = NULL;
    struct history_list list = {0};
    int code = history_open(options->db, HISTORY_EXISTING, &history);
    if (code == EXIT_DONE) {
        code = select_series(history, options, 0, &list);
    }
    if (code == EXIT_DONE) {
        const bool csv = options->format != NULL && strcmp(options->format, "csv") == 0;
        code = csv ? export_csv(options, &list) : report_write_json(show_json(&list), options);
    }
    history_free(&list);
    history_close(history);
    return code;
}

int cmd_history(const struct options *options) {
    enum action action = ACTION_ADD;
    const int code = find_action(options, &action);
    if (code != EXIT_DONE) {
        return code;
    }
    switch (action) {
        case ACTION_ADD:
            return add(options);
        case ACTION_SHOW:
            return show(options);
        case ACTION_CHECK:
            return check(options);
        case ACTION_EXPORT:
            return export_all(options);
        case ACTION_ACK:
            return ack(options);
    }
    return EXIT_USAGE;
}

#else

int cmd_history(const struct options *options) {
    (void)options;
    diag_error("history: this program was built without SQLite (Debian package libsqlite3-dev)");
    return EXIT_USAGE;
}

#endif
