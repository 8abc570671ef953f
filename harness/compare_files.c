/// Two files side by side: whether they can be compared, and which cases belong together.
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"
#include "diag.h"
#include "report_text.h"
#include "stats.h"

/// False discovery rate of each table.
static const double error_rate = 0.01;

static char *copy(const char *text) {
    return diag_alloc(strdup(text));
}

__attribute__((format(printf, 1, 2))) static char *format_text(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL;
    }
    va_end(arguments);
    return diag_alloc(text);
}

/// Adds a note; takes the text over.
static void add_note(struct comparison_report *report, char *text) {
    char **note = realloc(report->note, (report->notes + 1) * sizeof(*note));
    report->note = diag_alloc(note);
    report->note[report->notes++] = text;
}

// --- can they be compared?
// ----------------------------------------------------------------------------------------------

/// A fact of a context, by its path.
struct fact {
    const char *parents[2];  ///< Objects on the way; NULL behind the last one.
    const char *key;
    const char *name;  ///< As messages call it.
};

static const json_t *find_fact(const json_t *context, const struct fact *fact) {
    for (size_t i = 0; i < 2 && fact->parents[i] != NULL; i++) {
        context = json_object_get(context, fact->parents[i]);
    }
    const json_t *value = json_object_get(context, fact->key);
    return json_is_null(value) ? NULL : value;
}

/// Writes a short text of a value; the beginning of a long one.
static void value_text(char text[120], const json_t *value) {
    char *all = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    (void)snprintf(text, 120, "%.110s%s", all != NULL ? all : "?",
                   all != NULL && strlen(all) > 110 ? "..." : "");
    free(all);
}

/// What sets two machines or two measurements apart. All else (microcode, governor, compiler) may
/// be just what a user wants to compare, and is noted.
static const struct fact binding[] = {
    {{"mhabench", "machine"}, "cpu", "cpu"},
    {{"mhabench", "machine"}, "features", "CPU features"},
    {{"mhabench", "machine"}, "cores", "cores"},
    {{"mhabench", "machine"}, "threads_allowed", "threads_allowed"},
    {{"mhabench", "machine"}, "quota", "quota"},
    {{"mhabench", "machine"}, "smt", "smt"},
    {{"mhabench", "machine"}, "emulated", "emulated"},
    {{"mhabench", NULL}, "seed", "seed"},
    {{"mhabench", NULL}, "min_time_s", "seconds of a sample"},
    {{NULL, NULL}, "num_cpus", "num_cpus"},
    {{NULL, NULL}, "caches", "caches"},
    {{NULL, NULL}, "library_build_type", "library_build_type"},
};

static const struct fact worth_a_note[] = {
    {{NULL, NULL}, "host_name", "host_name"},
    {{"mhabench", "machine"}, "microcode", "microcode"},
    {{"mhabench", "machine"}, "governor", "governor"},
    {{"mhabench", "machine"}, "thp", "thp"},
    {{"mhabench", "machine"}, "ftz", "ftz"},
    {{"mhabench", "machine"}, "kernel", "kernel"},
    {{"mhabench", NULL}, "version", "version of mhabench"},
    {{"mhabench", "compiler"}, "name", "compiler"},
    {{"mhabench", "compiler"}, "version", "version of the compiler"},
    {{"mhabench", "compiler"}, "build", "build flags"},
};

/// Gets the difference in a fact that both contexts know, to be freed; NULL when there is none.
static char *difference(const json_t *base, const json_t *now, const struct fact *fact) {
    const json_t *a = find_fact(base, fact);
    const json_t *b = find_fact(now, fact);
    if (a == NULL || b == NULL || json_equal(a, b)) {
        return NULL;
    }
    char from[120], to[120];
    value_text(from, a);
    value_text(to, b);
    return format_text("%s: %s in the base, %s in the new one", fact->name, from, to);
}

/// Adds what differs, or refuses it.
static int check_contexts(const struct compare_file *base, const struct compare_file *now,
                          const struct compare_settings *how, struct comparison_report *report) {
    for (size_t i = 0; i < sizeof(binding) / sizeof(binding[0]); i++) {
        char *text = difference(base->context, now->context, &binding[i]);
        if (text != NULL && !how->relative) {
            diag_error(
                "cannot compare '%.200s' with '%.200s': %s; --relative compares each row with "
                "the scalar kernel of its own run",
                report->base_label, report->new_label, text);
            free(text);
            return EXIT_USAGE;
        }
        if (text != NULL) {
            add_note(report, text);
        }
    }
    for (size_t i = 0; i < sizeof(worth_a_note) / sizeof(worth_a_note[0]); i++) {
        char *text = difference(base->context, now->context, &worth_a_note[i]);
        if (text != NULL) {
            add_note(report, text);
        }
    }
    return EXIT_DONE;
}

// --- which cases belong together
// ----------------------------------------------------------------------------------------------

/// A case of the base and one of the new file; NULL where it has no partner.
struct match {
    struct compare_case *base, *now;
};

struct matches {
    size_t count;
    struct match *items;
};

static void put_index(json_t *map, const char *key, size_t index) {
    if (json_object_set_new(map, key, json_integer((json_int_t)index)) != 0) {
        diag_alloc(NULL);
    }
}

/// Makes the key by which a renamed kernel is known again: what it computes and its machine code.
/// NULL when the code is not known.
static char *identity(const struct compare_case *item) {
    return item->code_hash[0] != '\0' ? format_text("%s %s", item->problem, item->code_hash) : NULL;
}

/// Joins unmatched cases of equal machine code, problem and threads: the kernel was renamed.
static void match_renamed(struct compare_file *now, struct match *items, size_t count,
                          bool *taken) {
    json_t *map = diag_alloc(json_object());
    for (size_t i = 0; i < now->count; i++) {
        char *key = taken[i] ? NULL : identity(&now->cases[i]);
        if (key != NULL) {
            put_index(map, key, i);
        }
        free(key);
    }
    for (size_t i = 0; i < count; i++) {
        char *key = items[i].now != NULL ? NULL : identity(items[i].base);
        const json_t *index = key != NULL ? json_object_get(map, key) : NULL;
        if (index != NULL) {
            const size_t found = (size_t)json_integer_value(index);
            items[i].now = &now->cases[found];
            taken[found] = true;
            // Each stands for one.
            (void)json_object_del(map, key);
        }
        free(key);
    }
    json_decref(map);
}

/// Matches by name, then by machine code: base cases in their order, then the new ones in theirs.
static struct matches match_cases(struct compare_file *base, struct compare_file *now) {
    struct matches matches = {0, NULL};
    matches.items = diag_alloc(calloc(base->count + now->count + 1, sizeof(*matches.items)));
    bool *taken = diag_alloc(calloc(now->count + 1, sizeof(*taken)));
    json_t *map = diag_alloc(json_object());
    for (size_t i = 0; i < now->count; i++) {
        put_index(map, now->cases[i].name, i);
    }
    for (size_t i = 0; i < base->count; i++) {
        const json_t *index = json_object_get(map, base->cases[i].name);
        struct match *match = &matches.items[matches.count++];
        match->base = &base->cases[i];
        if (index != NULL) {
            const size_t found = (size_t)json_integer_value(index);
            match->now = &now->cases[found];
            taken[found] = true;
        }
    }
    json_decref(map);
    match_renamed(now, matches.items, matches.count, taken);
    for (size_t i = 0; i < now->count; i++) {
        if (!taken[i]) {
            matches.items[matches.count++].now = &now->cases[i];
        }
    }
    free(taken);
    return matches;
}

// --- relative to the scalar kernel
// ----------------------------------------------------------------------------------------------

static bool is_timed(const struct match *match) {
    return match->base != NULL && match->now != NULL && match->base->state == CASE_TIMED &&
           match->now->state == CASE_TIMED;
}

/// Finds for each problem the yardstick: of the scalar kernels that have times on both sides the
/// one that is fastest in the base. Gets a map from the problem to the index of the match.
static json_t *find_yardsticks(const struct matches *matches) {
    json_t *map = diag_alloc(json_object());
    for (size_t i = 0; i < matches->count; i++) {
        const struct match *match = &matches->items[i];
        if (!is_timed(match) || !match->base->scalar || !match->now->scalar) {
            continue;
        }
        const json_t *index = json_object_get(map, match->base->problem);
        if (index == NULL || match->base->ns < matches->items[json_integer_value(index)].base->ns) {
            put_index(map, match->base->problem, i);
        }
    }
    return map;
}

/// Divides a case by its yardstick, launch by launch: both ran in the same process.
static void divide(struct compare_side *side, const struct compare_side *by) {
    const size_t launches = side->launches < by->launches ? side->launches : by->launches;
    for (size_t i = 0; i < launches; i++) {
        side->log_ns[i] -= by->log_ns[i];
    }
    side->launches = launches;
    side->within = hypot(side->within, by->within);
    if (side->within_df > by->within_df) {
        side->within_df = by->within_df;
    }
}

static bool has_launches(const struct compare_side *side) {
    for (size_t i = 0; i < side->launches; i++) {
        if (!isnan(side->log_ns[i])) {
            return true;
        }
    }
    return false;
}

static void refuse_case(struct compare_case *item, const char *reason) {
    item->state = CASE_BAD;
    free(item->reason);
    item->reason = copy(reason);
}

/// Makes all times multiples of the yardsticks' and takes these out of the table.
static void make_relative(struct matches *matches, struct comparison_report *report) {
    json_t *map = find_yardsticks(matches);
    size_t changed = 0, yardsticks = 0;
    bool *is_yardstick = diag_alloc(calloc(matches->count + 1, sizeof(*is_yardstick)));
    for (size_t i = 0; i < matches->count; i++) {
        struct match *match = &matches->items[i];
        if (!is_timed(match)) {
            continue;
        }
        const json_t *index = json_object_get(map, match->base->problem);
        if (index == NULL) {
            refuse_case(match->now,
                        match->now->kernel[0] == '\0'
                            ? "a plain file of Google Benchmark has no scalar kernels"
                            : "no scalar kernel of this problem and these threads has a "
                              "time in both files");
            continue;
        }
        const size_t at = (size_t)json_integer_value(index);
        if (at == i) {
            is_yardstick[i] = true;
            yardsticks++;
            changed += strcmp(match->base->code_hash, match->now->code_hash) != 0;
            continue;
        }
        divide(&match->base->side, &matches->items[at].base->side);
        divide(&match->now->side, &matches->items[at].now->side);
        if (!has_launches(&match->base->side) || !has_launches(&match->now->side)) {
            refuse_case(match->now, "no launch has both this kernel and the scalar one");
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < matches->count; i++) {
        if (!is_yardstick[i]) {
            matches->items[kept++] = matches->items[i];
        }
    }
    matches->count = kept;
    free(is_yardstick);
    json_decref(map);
    add_note(report,
             format_text("relative: changes are those of time / time of the scalar kernel of "
                         "the same problem, threads and launch; the %zu scalar rows that "
                         "serve as such are not judged",
                         yardsticks));
    if (changed > 0) {
        add_note(report,
                 format_text("the machine code of %zu of these scalar kernels is not the same "
                             "on both sides: where it became faster, other rows look slower",
                             changed));
    }
}

// --- rows
// ----------------------------------------------------------------------------------------------

/// Fills a row from its cases, all but the judgement.
static void fill_row(struct comparison *row, const struct match *match) {
    const struct compare_case *shown = match->now != NULL ? match->now : match->base;
    row->name = copy(shown->name);
    row->kernel = copy(shown->kernel);
    row->op = copy(shown->op);
    row->base_ns = match->base != NULL ? match->base->ns : UNKNOWN;
    row->new_ns = match->now != NULL ? match->now->ns : UNKNOWN;
    row->change = row->low = row->high = row->smallest_effect = UNKNOWN;
    if (match->base != NULL && match->now != NULL) {
        if (strcmp(match->base->name, match->now->name) != 0) {
            row->old_name = copy(match->base->name);
        }
        row->same_code = match->base->code_hash[0] != '\0' &&
                         strcmp(match->base->code_hash, match->now->code_hash) == 0;
    }
}

/// Gives a row without two times its verdict; false when it is no row at all: a case that neither
/// side ran.
static bool settle_untimed(struct comparison *row, const struct match *match) {
    const struct compare_case *base = match->base;
    const struct compare_case *now = match->now;
    const bool base_ran = base != NULL && base->state != CASE_NOT_RUN;
    const bool now_ran = now != NULL && now->state != CASE_NOT_RUN;
    if (!base_ran && !now_ran) {
        return false;
    }
    if ((base_ran && base->state == CASE_BAD) || (now_ran && now->state == CASE_BAD)) {
        row->verdict = COMPARISON_ERROR;
        const bool both = base_ran && base->state == CASE_BAD && now_ran && now->state == CASE_BAD;
        if (both && strcmp(base->reason, now->reason) != 0) {
            row->reason = format_text("base: %s; new: %s", base->reason, now->reason);
        } else if (both) {
            row->reason = format_text("both: %s", now->reason);
        } else if (now_ran && now->state == CASE_BAD) {
            row->reason = format_text("new: %s", now->reason);
        } else {
            row->reason = format_text("base: %s", base->reason);
        }
        return true;
    }
    row->verdict = base_ran ? COMPARISON_MISSING : COMPARISON_NEW;
    const struct compare_case *lacking = base_ran ? now : base;
    if (lacking != NULL) {
        row->reason = format_text("%s: %s", base_ran ? "new" : "base", lacking->reason);
    }
    return true;
}

static void add_launch_notes(struct comparison_report *report, const struct compare_pair *pairs,
                             size_t count, struct compare_added added) {
    for (int now = 0; now < 2; now++) {
        const double share = now ? added.now : added.base;
        size_t least = SIZE_MAX, few = 0;
        for (size_t i = 0; i < count; i++) {
            const struct compare_side *side = now ? pairs[i].now : pairs[i].base;
            least = side->launches < least ? side->launches : least;
            few += side->launches < COMPARE_LAUNCHES_ENOUGH;
        }
        if (few > 0) {
            add_note(report,
                     format_text("%s: %zu of %zu rows have fewer than %d launches (least: %zu); a "
                                 "spread of %.1f %% between launches is added to theirs",
                                 now ? "new" : "base", few, count, COMPARE_LAUNCHES_ENOUGH, least,
                                 100.0 * share));
        }
        if (few > 0 && least == 1) {
            add_note(report,
                     format_text("%s: one launch tells nothing of others: where they differ "
                                 "by more than what was added, verdicts are wrong more "
                                 "often than the rate says",
                                 now ? "new" : "base"));
        }
    }
}

/// Judges the rows that have times on both sides, and finds the noise floor.
static void judge_rows(struct comparison_report *report, const struct match *const *timed,
                       struct comparison *const *rows, size_t count,
                       const struct compare_settings *how) {
    const struct compare_rules rules = {how->floor, how->launch_floor, error_rate};
    struct compare_pair *pairs = diag_alloc(calloc(count + 1, sizeof(*pairs)));
    for (size_t i = 0; i < count; i++) {
        compare_compact(&timed[i]->base->side);
        compare_compact(&timed[i]->now->side);
        pairs[i].base = &timed[i]->base->side;
        pairs[i].now = &timed[i]->now->side;
        pairs[i].same_code = rows[i]->same_code;
    }
    const struct compare_added added = compare_judge(pairs, count, &rules);
    size_t drifted = 0;
    for (size_t i = 0; i < count; i++) {
        struct comparison *row = rows[i];
        const size_t a = pairs[i].base->launches, b = pairs[i].now->launches;
        row->verdict = pairs[i].verdict;
        row->change = pairs[i].change;
        row->low = pairs[i].low;
        row->high = pairs[i].high;
        row->smallest_effect = pairs[i].smallest_effect;
        row->launches = a < b ? a : b;
        if (row->same_code) {
            const double size = fabs(row->change);
            report->noise_floor =
                isnan(report->noise_floor) ? size : fmax(report->noise_floor, size);
            drifted += row->verdict == COMPARISON_ENV_DRIFT;
        }
        if (row->old_name != NULL) {
            row->reason = format_text("renamed; its machine code is the same");
        } else if (row->verdict == COMPARISON_ENV_DRIFT) {
            row->reason =
                format_text("the machine code is the same: what changed is the environment");
        } else if (row->same_code && !(fmax(fabs(row->low), fabs(row->high)) <= how->floor)) {
            row->reason = format_text("the machine code is the same; its times would not tell");
        }
    }
    add_launch_notes(report, pairs, count, added);
    if (added.drift.rows > 0) {
        add_note(report,
                 format_text("the table as a whole moved by %+.2f %%, its rows by %.2f %% more "
                             "than their own errors: taken for a drift of the machine between "
                             "the two runs, which `ab` does not suffer from",
                             100.0 * expm1(added.drift.shift), 100.0 * added.drift.scatter));
    }
    if (drifted > 0) {
        add_note(report,
                 format_text("%zu rows of unchanged machine code changed their times: the two "
                             "runs did not find the same conditions, and changes of other "
                             "rows may have the same cause",
                             drifted));
    }
    free(pairs);
}

static void make_rows(struct comparison_report *report, const struct matches *matches,
                      const struct compare_settings *how) {
    report->rows = diag_alloc(calloc(matches->count + 1, sizeof(*report->rows)));
    const struct match **timed = diag_alloc(calloc(matches->count + 1, sizeof(struct match *)));
    struct comparison **rows = diag_alloc(calloc(matches->count + 1, sizeof(struct comparison *)));
    size_t count = 0, not_run = 0;
    for (size_t i = 0; i < matches->count; i++) {
        const struct match *match = &matches->items[i];
        struct comparison *row = &report->rows[report->count];
        if (!is_timed(match) && !settle_untimed(row, match)) {
            not_run++;
            continue;
        }
        fill_row(row, match);
        report->count++;
        if (is_timed(match)) {
            timed[count] = match;
            rows[count++] = row;
        }
    }
    judge_rows(report, timed, rows, count, how);
    free(timed);
    free(rows);
    if (not_run > 0) {
        add_note(report,
                 format_text("%zu cases that neither run measured (SKIPPED, UNSUPPORTED) are "
                             "left out",
                             not_run));
    }
}

static void add_file_notes(struct comparison_report *report, const struct compare_file *file,
                           const char *label) {
    if (file->converted > 0) {
        add_note(report, format_text("%s: %zu times were converted to ns", label, file->converted));
    }
    if (file->aggregated > 0) {
        add_note(report,
                 format_text("%s: %zu cases have aggregates only; their median (or mean) is "
                             "taken",
                             label, file->aggregated));
    }
    if (!file->own) {
        add_note(report,
                 format_text("%s: written by Google Benchmark itself: all its repetitions "
                             "count as one launch, and nothing is known of the machine code",
                             label));
    }
}

int compare_files(const char *base_path, const char *new_path, const struct compare_settings *how,
                  struct comparison_report *report) {
    struct text text;
    memset(report, 0, sizeof(*report));
    // The numbers in notes are the same in every locale.
    text_locale_begin(&text);
    report->command = copy("compare");
    report->base_label = copy(base_path);
    report->new_label = copy(new_path);
    report->floor = how->floor;
    report->error_rate = error_rate;
    report->noise_floor = UNKNOWN;
    report->method = copy(
        "Welch's t test on the logarithms of the launches' medians, one-sided "
        "beyond the floor; false discovery rate by Benjamini and Yekutieli (2001); "
        "SAME by two one-sided tests (Schuirmann 1987)");
    struct compare_file base = {0}, now = {0};
    int code = compare_read(base_path, &base);
    if (code == EXIT_DONE) {
        code = compare_read(new_path, &now);
    }
    if (code == EXIT_DONE) {
        code = check_contexts(&base, &now, how, report);
    }
    if (code == EXIT_DONE) {
        report->base_context = json_incref(base.context);
        report->new_context = json_incref(now.context);
        add_file_notes(report, &base, "base");
        add_file_notes(report, &now, "new");
        struct matches matches = match_cases(&base, &now);
        if (how->relative) {
            make_relative(&matches, report);
        }
        make_rows(report, &matches, how);
        free(matches.items);
        if (report->count == 0) {
            // A gate that lets two empty files pass guards nothing.
            diag_error("'%.200s' and '%.200s': neither has a case that was measured",
                       report->base_label, report->new_label);
            code = EXIT_USAGE;
        }
    }
    compare_file_free(&base);
    compare_file_free(&now);
    text_locale_end(&text);
    return code;
}
