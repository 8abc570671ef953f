/// Result files as cases: ours, and those of Google Benchmark.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "diag.h"
#include "results.h"
#include "stats.h"

static char *copy(const char *text) {
    return diag_alloc(strdup(text));
}

__attribute__((format(printf, 2, 3))) static void set_reason(struct compare_case *item,
                                                             const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    free(item->reason);
    item->reason = diag_alloc(text);
}

static void bad(struct compare_case *item, const char *reason) {
    item->state = CASE_BAD;
    set_reason(item, "%s", reason);
}

/// Fills what a launch's samples tell of themselves: the standard error of a median of normal
/// values is sqrt(pi / 2) times that of their mean (Kendall and Stuart, The Advanced Theory of
/// Statistics, volume 1, section 14.12).
static void set_within(struct compare_side *side, const double *ns, size_t count) {
    if (count < 2) {
        return;
    }
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++) {
        sum += log(ns[i]);
    }
    const double middle = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        squares += (log(ns[i]) - middle) * (log(ns[i]) - middle);
    }
    side->within = sqrt(M_PI_2 * squares / (double)(count - 1) / (double)count);
    side->within_df = count - 1;
}

/// Takes the positive numbers among a launch's samples; a null is a sample that was lost.
static size_t take_samples(const struct launch_samples *launch, double *ns) {
    size_t count = 0;
    for (size_t i = 0; i < launch->count; i++) {
        if (isfinite(launch->ns[i]) && launch->ns[i] > 0.0) {
            ns[count++] = launch->ns[i];
        }
    }
    return count;
}

static void fill_launches(struct compare_case *item, const struct row *row) {
    struct compare_side *side = &item->side;
    size_t most = 1;
    for (size_t i = 0; i < row->launches; i++) {
        most = row->samples[i].count > most ? row->samples[i].count : most;
    }
    double *ns = diag_alloc(calloc(most, sizeof(*ns)));
    side->launches = row->launches;
    side->log_ns = diag_alloc(calloc(row->launches + 1, sizeof(*side->log_ns)));
    size_t measured = 0;
    for (size_t i = 0; i < row->launches; i++) {
        const size_t count = take_samples(&row->samples[i], ns);
        side->log_ns[i] = count > 0 ? log(stats_median(ns, count)) : UNKNOWN;
        if (count > 0 && measured++ == 0) {
            set_within(side, ns, count);
        }
    }
    free(ns);
    if (measured == 0) {
        // A file that was thinned out to its aggregates.
        side->launches = 1;
        side->log_ns[0] = log(row->median_ns);
    }
}

static void fill_own(struct compare_case *item, const struct row *row) {
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    item->name = copy(name);
    problem_case_name(name, &row->problem, "", "", row->threads);
    item->problem = copy(name);
    item->kernel = copy(row->kernel);
    item->op = copy(row->problem.op);
    item->code_hash = copy(row->code_hash != NULL ? row->code_hash : "");
    item->scalar = !row->peer && row->plugin == NULL && strcmp(row->isa, "scalar") == 0;
    item->ns = UNKNOWN;
    if (row_has_time(row)) {
        item->ns = row->median_ns;
        fill_launches(item, row);
        return;
    }
    const bool not_run = row->verdict == VERDICT_SKIPPED || row->verdict == VERDICT_UNSUPPORTED;
    item->state = not_run ? CASE_NOT_RUN : CASE_BAD;
    if (row->verdict == VERDICT_PASSED) {
        set_reason(item, row->median_ns <= 0.0 ? "its time is 0" : "it has no time");
    } else {
        set_reason(item, "%s%s%s", verdict_text(row->verdict), row->reason != NULL ? ": " : "",
                   row->reason != NULL ? row->reason : "");
    }
}

static int read_own(const char *path, const json_t *root, struct compare_file *file) {
    struct result result;
    const int code = results_from_json(path, root, &result);
    if (code != EXIT_DONE) {
        return code;
    }
    file->own = true;
    file->count = result.count;
    file->cases = diag_alloc(calloc(result.count + 1, sizeof(*file->cases)));
    for (size_t i = 0; i < result.count; i++) {
        fill_own(&file->cases[i], &result.rows[i]);
    }
    results_free(&result);
    return EXIT_DONE;
}

// --- Google Benchmark
// -------------------------------------------------------------------------------------------

/// How much an entry of a plain file is worth: of a case's entries the best kind counts alone.
enum entry_kind { ENTRY_NONE, ENTRY_MEAN, ENTRY_MEDIAN, ENTRY_ITERATION };

static enum entry_kind kind_of(const json_t *entry) {
    const char *type = json_string_value(json_object_get(entry, "run_type"));
    const char *aggregate = json_string_value(json_object_get(entry, "aggregate_name"));
    // Before version 1.5 there was no run_type.
    if (type == NULL || strcmp(type, "aggregate") != 0) {
        return ENTRY_ITERATION;
    }
    if (aggregate != NULL && strcmp(aggregate, "median") == 0) {
        return ENTRY_MEDIAN;
    }
    return aggregate != NULL && strcmp(aggregate, "mean") == 0 ? ENTRY_MEAN : ENTRY_NONE;
}

/// Case that is gathered from entries of one name.
struct plain_case {
    const char *name;  ///< Belongs to the JSON.
    enum entry_kind kind;
    size_t count;
    double *ns;
    bool failed;
    const char *error;  ///< Google Benchmark's message, or NULL.
};

static bool unit_ns(const char *unit, double *ns) {
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) == 0) {
            *ns = units[i].ns;
            return true;
        }
    }
    return false;
}

/// Reads what one entry says of its case; false after a message.
static bool read_entry(const char *path, size_t index, const json_t *entry, struct plain_case *item,
                       size_t *converted) {
    const enum entry_kind kind = kind_of(entry);
    if (kind == ENTRY_NONE || kind < item->kind) {
        return true;
    }
    if (kind > item->kind) {
        item->kind = kind;
        item->count = 0;
        item->failed = false;
        item->error = NULL;
    }
    const char *skipped = json_string_value(json_object_get(entry, "skip_message"));
    if (json_is_true(json_object_get(entry, "error_occurred")) || skipped != NULL) {
        const char *message = json_string_value(json_object_get(entry, "error_message"));
        item->failed = true;
        item->error = message != NULL ? message : skipped;
        return true;
    }
    const json_t *unit = json_object_get(entry, "time_unit");
    double factor = 1.0;
    if (unit != NULL && (!json_is_string(unit) || !unit_ns(json_string_value(unit), &factor))) {
        const char *text = json_string_value(unit);
        diag_error(
            "%s: benchmarks[%zu]: the time_unit '%.40s' is not known; known are ns, us, ms, s",
            path, index, text != NULL ? text : "(no string)");
        return false;
    }
    *converted += factor > 1.0;
    const json_t *time = json_object_get(entry, "real_time");
    double *ns = realloc(item->ns, (item->count + 1) * sizeof(*ns));
    item->ns = diag_alloc(ns);
    item->ns[item->count++] = json_is_number(time) ? json_number_value(time) * factor : UNKNOWN;
    return true;
}

static void fill_plain(struct compare_case *item, const struct plain_case *plain) {
    item->name = copy(plain->name);
    item->kernel = copy("");
    item->op = copy("");
    item->problem = copy("");
    item->code_hash = copy("");
    item->ns = UNKNOWN;
    if (plain->failed) {
        bad(item, plain->error != NULL ? plain->error : "it reports an error");
        return;
    }
    for (size_t i = 0; i < plain->count; i++) {
        if (!(isfinite(plain->ns[i]) && plain->ns[i] > 0.0)) {
            bad(item, isnan(plain->ns[i])   ? "it has no real_time"
                      : isinf(plain->ns[i]) ? "its time is beyond all numbers"
                                            : "its time is 0 or less");
            return;
        }
    }
    item->ns = stats_median(plain->ns, plain->count);
    item->side.launches = 1;
    item->side.log_ns = diag_alloc(calloc(1, sizeof(double)));
    item->side.log_ns[0] = log(item->ns);
    set_within(&item->side, plain->ns, plain->count);
}

static int gather_plain(const char *path, const json_t *entries, struct plain_case *items,
                        size_t *count, size_t *converted) {
    json_t *known = diag_alloc(json_object());
    int code = EXIT_DONE;
    for (size_t i = 0; i < json_array_size(entries) && code == EXIT_DONE; i++) {
        const json_t *entry = json_array_get(entries, i);
        // An aggregate's own name ends with "_mean"; run_name is that of its case.
        const char *name = json_string_value(json_object_get(entry, "run_name"));
        name = name != NULL ? name : json_string_value(json_object_get(entry, "name"));
        if (name == NULL) {
            diag_error("%s: benchmarks[%zu] has no name", path, i);
            code = EXIT_USAGE;
            break;
        }
        const json_t *index = json_object_get(known, name);
        if (index == NULL) {
            diag_alloc(json_object_set_new(known, name, json_integer((json_int_t)*count)) == 0
                           ? known
                           : NULL);
            items[*count].name = name;
            index = json_object_get(known, name);
            (*count)++;
        }
        if (!read_entry(path, i, entry, &items[json_integer_value(index)], converted)) {
            code = EXIT_USAGE;
        }
    }
    json_decref(known);
    return code;
}

static int read_plain(const char *path, const json_t *root, struct compare_file *file) {
    const json_t *entries = json_object_get(root, "benchmarks");
    if (!json_is_array(entries)) {
        diag_error("%s: not a result file: it has no array \"benchmarks\"", path);
        return EXIT_USAGE;
    }
    const size_t most = json_array_size(entries);
    struct plain_case *items = diag_alloc(calloc(most + 1, sizeof(*items)));
    size_t count = 0;
    const int code = gather_plain(path, entries, items, &count, &file->converted);
    file->cases = diag_alloc(calloc(count + 1, sizeof(*file->cases)));
    for (size_t i = 0; i < count; i++) {
        // A name that has fits of complexity alone (BigO, RMS) is no case.
        if (code == EXIT_DONE && items[i].kind != ENTRY_NONE) {
            file->aggregated += items[i].kind != ENTRY_ITERATION;
            fill_plain(&file->cases[file->count++], &items[i]);
        }
        free(items[i].ns);
    }
    free(items);
    return code;
}

int compare_read(const char *path, struct compare_file *file) {
    memset(file, 0, sizeof(*file));
    json_t *root = results_load(path);
    if (root == NULL) {
        return EXIT_USAGE;
    }
    json_t *context = json_object_get(root, "context");
    int code = EXIT_DONE;
    if (!json_is_object(root)) {
        diag_error("%s: not a result file: it is no JSON object", path);
        code = EXIT_USAGE;
    } else {
        code = json_object_get(context, "mhabench") != NULL ? read_own(path, root, file)
                                                            : read_plain(path, root, file);
    }
    if (code == EXIT_DONE && json_is_object(context)) {
        file->context = json_incref(context);
    }
    json_decref(root);
    return code;
}

void compare_file_free(struct compare_file *file) {
    for (size_t i = 0; i < file->count; i++) {
        struct compare_case *item = &file->cases[i];
        free(item->name);
        free(item->kernel);
        free(item->op);
        free(item->problem);
        free(item->code_hash);
        free(item->reason);
        free(item->side.log_ns);
    }
    free(file->cases);
    json_decref(file->context);
    memset(file, 0, sizeof(*file));
}

void compare_compact(struct compare_side *side) {
    size_t kept = 0;
    for (size_t i = 0; i < side->launches; i++) {
        if (!isnan(side->log_ns[i])) {
            side->log_ns[kept++] = side->log_ns[i];
        }
    }
    side->launches = kept;
}
