/// The parent's side of `ab`: launches, their plan, the looks between them, crashes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ab.h"
#include "diag.h"
#include "protocol.h"
#include "stats.h"
#include "supervisor.h"
#include "team.h"

/// Pairs of a row in a launch: the spread of one pair is two to three times that between launches,
/// and coming to a row costs about as much as one to three pairs, so that the variance for the time
/// spent is least near (spread ratio) * sqrt(cost ratio).
enum { USUAL_PAIRS = 5 };

/// The median of so many pairs bears one that was disturbed; where a pair is dear, a launch has
/// one.
enum { ROBUST_PAIRS = 3 };
#define DEAR_PAIR_S 0.02

/// Launches that every row should get: a row that cannot get that many can hardly be settled.
enum { LEAST_LAUNCHES = 16 };

/// Of the rows with equal code so many are measured, in so many launches.
enum { CONTROL_ROWS = 8, CONTROL_LAUNCHES = 16 };

/// Share of the budget that the control may take.
#define CONTROL_SHARE 0.1

/// No more launches than this: the evidence of a thousand is as good as any.
enum { MOST_LAUNCHES = 1000 };

struct state {
    struct ab_run *run;
    double end_ns;
    long current;  ///< Row that the worker is busy with, or -1.
    char what[80];
    char fault[200];  ///< What the worker said of a fault, or "".
    double pairs_ns;  ///< Spent in pairs, in this launch.
    size_t visits;    ///< Rows visited in this launch.
    double visit_ns;  ///< Time for a visit beside the pairs; 0 before the first launch.
};

static void set_reason(struct ab_row *row, const char *reason) {
    free(row->reason);
    row->reason = diag_alloc(strdup(reason));
}

static struct ab_series *series_of(const struct ab_row *row) {
    return &row->table->series[row->index];
}

/// Tells whether a row has something to do in further launches.
static bool is_open(const struct ab_row *row) {
    return row->table && !row->failed && !row->dropped && !row->lacking[AB_BASE] &&
           !row->lacking[AB_NEW] && series_of(row)->verdict == COMPARISON_INCONCLUSIVE &&
           !(row->same_code && row->launches >= CONTROL_LAUNCHES);
}

static size_t count_open(const struct ab_run *run, const struct ab_table *table) {
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++) {
        count += run->rows[i].table == table && is_open(&run->rows[i]);
    }
    return count;
}

static void row_name(const struct ab_run *run, const struct ab_row *row,
                     char name[CASE_NAME_BYTES]) {
    problem_case_name(name, &run->problems[row->problem], row->isa, row->tag, row->threads);
}

// --- events
// --------------------------------------------------------------------------------------------

static bool read_times(const json_t *array, double *ns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ns[i] = json_number_value(json_array_get(array, i));
        if (!(ns[i] > 0)) {
            return false;
        }
    }
    return count > 0;
}

/// A launch of one row: it counts with the median of its log-ratios.
static void apply_pairs(struct state *s, struct ab_row *row, const json_t *event) {
    double ns[AB_SIDES][AB_PAIRS_MAX], ratios[AB_PAIRS_MAX];
    const json_t *base = json_object_get(event, "base"), *now = json_object_get(event, "new");
    const json_t *hashes = json_object_get(event, "hash");
    const size_t count = json_array_size(base);
    if (count > AB_PAIRS_MAX || json_array_size(now) != count ||
        !read_times(base, ns[AB_BASE], count) || !read_times(now, ns[AB_NEW], count)) {
        row->failed = true;
        set_reason(row, "the worker sent no times");
        return;
    }
    row->call_ns = fmax(1, protocol_get_real(event, "call_ns"));
    const double calls = fmax(1, ceil(AB_SAMPLE_S * 1e9 / row->call_ns));
    double spent = 0;
    for (size_t i = 0; i < count; i++) {
        ratios[i] = log(ns[AB_NEW][i] / ns[AB_BASE][i]);
        spent += (ns[AB_NEW][i] + ns[AB_BASE][i]) * calls;
    }
    s->pairs_ns += spent;
    row->pair_ns = spent / (double)count;
    for (size_t k = 0; k < AB_SIDES; k++) {
        row->ns[k] = diag_alloc(realloc(row->ns[k], (row->launches + 1) * sizeof(*row->ns[k])));
        row->ns[k][row->launches] = stats_median(ns[k], count);
        const char *hash = json_string_value(json_array_get(hashes, k));
        snprintf(row->hash[k], sizeof(row->hash[k]), "%s", hash ? hash : "");
    }
    row->launches++;
    ab_table_add(row->table, row->index, stats_median(ratios, count));
}

static bool is_event(const json_t *event, const char *what) {
    return strcmp(protocol_get_string(event, "event"), what) == 0;
}

static void progress(const struct state *s) {
    const struct ab_run *run = s->run;
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[Klaunch %zu: %zu of %zu rows are open, %.0f s left",
                run->launches + 1, count_open(run, &run->tested), run->tested.count,
                fmax(0, (s->end_ns - team_now_ns()) / 1e9));
    }
}

static void on_event(void *context, const json_t *event) {
    struct state *s = context;
    if (is_event(event, "fault")) {
        snprintf(s->fault, sizeof(s->fault), "%s", protocol_get_string(event, "text"));
        return;
    }
    const size_t i = (size_t)protocol_get_integer(event, "row");
    if (i >= s->run->count) {
        return;
    }
    struct ab_row *row = &s->run->rows[i];
    if (is_event(event, "start")) {
        s->current = (long)i;
        snprintf(s->what, sizeof(s->what), "%s", protocol_get_string(event, "what"));
        return;
    }
    row->visited = true;
    s->visits++;
    if (is_event(event, "pairs")) {
        apply_pairs(s, row, event);
    } else {
        set_reason(row, protocol_get_string(event, "reason"));
        row->failed = is_event(event, "bad");
        row->dropped = is_event(event, "slow");
        row->lacking[AB_BASE] = json_is_true(json_object_get(event, "base"));
        row->lacking[AB_NEW] = json_is_true(json_object_get(event, "new"));
    }
}

// --- launches
// ------------------------------------------------------------------------------------------

static json_t *make_job(const struct state *s) {
    const struct ab_run *run = s->run;
    const struct machine *m = run->machine;
    json_t *problems = json_array();
    size_t problem_count = 0;
    for (size_t i = 0; i < run->count; i++) {
        problem_count =
            run->rows[i].problem >= problem_count ? run->rows[i].problem + 1 : problem_count;
    }
    for (size_t p = 0; p < problem_count; p++) {
        json_t *rows = json_array();
        for (size_t i = 0; i < run->count; i++) {
            const struct ab_row *row = &run->rows[i];
            if (row->problem == p && is_open(row) && !row->visited) {
                json_array_append_new(
                    rows, json_pack("{s:I, s:s, s:i, s:I, s:f, s:[s, s]}", "id", (json_int_t)i,
                                    "kernel", row->kernel, "threads", row->threads, "pairs",
                                    (json_int_t)row->pairs, "call_ns", row->call_ns, "hash",
                                    row->hash[AB_BASE], row->hash[AB_NEW]));
            }
        }
        if (json_array_size(rows) > 0) {
            json_array_append_new(
                problems, json_pack("{s:o, s:o}", "problem",
                                    protocol_problem_to_json(&run->problems[p]), "rows", rows));
        } else {
            json_decref(rows);
        }
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:f, s:I, s:o}", "mode", "ab", "base",
                     run->paths[AB_BASE], "new", run->paths[AB_NEW], "seed",
                     (json_int_t)run->options->seed, "threads_allowed",
                     (json_int_t)m->threads_allowed, "launch", (json_int_t)run->launches, "seconds",
                     fmax(0.1, (s->end_ns - team_now_ns()) / 1e9), "last_level_bytes",
                     (json_int_t)(m->l3_bytes ? m->l3_bytes : m->l2_bytes), "problems", problems);
}

static void mark_crashed(struct state *s, const char *text) {
    struct ab_row *row = &s->run->rows[s->current];
    char reason[500];
    snprintf(reason, sizeof(reason), "%s while %s%s%s", text, s->what, s->fault[0] ? ": " : "",
             s->fault);
    set_reason(row, reason);
    row->failed = true;
    row->visited = true;
}

/// One launch: workers until every open row was visited, or the time is up.
static int launch(struct state *s) {
    struct ab_run *run = s->run;
    const struct supervisor supervisor = {run->machine, run->options->timeout_s, true, on_event, s};
    const double start = team_now_ns();
    s->pairs_ns = 0;
    s->visits = 0;
    for (size_t i = 0; i < run->count; i++) {
        run->rows[i].visited = false;
    }
    for (int silent = 0;;) {
        char text[400];
        s->current = -1;
        s->fault[0] = '\0';
        json_t *job = make_job(s);
        const bool nothing = json_array_size(json_object_get(job, "problems")) == 0;
        const enum worker_end end =
            nothing ? WORKER_DONE : supervisor_run(&supervisor, job, text, sizeof(text));
        json_decref(job);
        if (end == WORKER_REFUSED) {
            return EXIT_USAGE;
        }
        if (end == WORKER_INTERRUPTED) {
            run->interrupted = true;
        }
        if (end == WORKER_DONE || end == WORKER_INTERRUPTED) {
            break;
        }
        if (s->current >= 0) {
            mark_crashed(s, text);
            silent = 0;
        } else if (++silent >= 3) {
            diag_error("the worker failed three times outside any kernel: %s", text);
            return EXIT_USAGE;
        }
    }
    // The first launch also waits for the oracle, which says nothing of the others.
    if (s->visits > 0 && run->launches > 0) {
        s->visit_ns = (team_now_ns() - start - s->pairs_ns) / (double)s->visits;
    }
    run->launches++;
    return EXIT_DONE;
}

// --- the plan
// ------------------------------------------------------------------------------------------

/// Gives every open row its pairs for the next launch. Returns what the launch will take, in
/// nanoseconds; 0 before anything is known.
static double plan(const struct state *s) {
    const struct ab_run *run = s->run;
    double least = 0, total = 0;
    size_t open = 0;
    for (size_t i = 0; i < run->count; i++) {
        if (is_open(&run->rows[i])) {
            least += run->rows[i].pair_ns + s->visit_ns;
            open++;
        }
    }
    for (size_t i = 0; i < run->count; i++) {
        struct ab_row *row = &run->rows[i];
        if (!is_open(row)) {
            continue;
        }
        // A slow row gets fewer pairs; a quick one no less time than coming to it costs, nor than a
        // quarter of what an average row of this launch takes.
        const double time = fmax(USUAL_PAIRS * 2 * AB_SAMPLE_S * 1e9,
                                 fmax(s->visit_ns, open ? least / (4 * (double)open) : 0));
        const double fit = row->pair_ns > 0 ? floor(time / row->pair_ns) : 1;
        const double least_pairs = row->pair_ns > DEAR_PAIR_S * 1e9 ? 1 : ROBUST_PAIRS;
        row->pairs = (size_t)fmin(AB_PAIRS_MAX, fmax(least_pairs, fit));
        total += (double)row->pairs * row->pair_ns + s->visit_ns;
    }
    return total;
}

/// Gives up the slowest rows of a table until the others can have `launches` in `time_ns`.
static void drop_slow(const struct state *s, const struct ab_table *table, size_t launches,
                      double time_ns) {
    for (;;) {
        double total = 0;
        struct ab_row *slowest = NULL;
        for (size_t i = 0; i < s->run->count; i++) {
            struct ab_row *row = &s->run->rows[i];
            if (row->table == table && is_open(row)) {
                total += row->pair_ns + s->visit_ns;
                slowest = !slowest || row->pair_ns > slowest->pair_ns ? row : slowest;
            }
        }
        if (!slowest || (double)launches * total <= time_ns) {
            return;
        }
        char reason[160];
        snprintf(reason, sizeof(reason),
                 "one pair of samples takes %.3g s: there is no time for %zu launches",
                 slowest->pair_ns / 1e9, launches);
        set_reason(slowest, reason);
        slowest->dropped = true;
    }
}

/// After the first launch, which told what a pair takes, and the second, which told the rest.
static void fit_budget(const struct state *s) {
    const struct ab_run *run = s->run;
    const double left = s->end_ns - team_now_ns();
    const size_t alone = ab_least_launches(log((double)run->tested.count / run->rate));
    drop_slow(s, &run->control, CONTROL_LAUNCHES, CONTROL_SHARE * left);
    if (run->tested.count > 0) {
        drop_slow(s, &run->tested, alone > LEAST_LAUNCHES ? alone : LEAST_LAUNCHES, left);
    }
}

/// Chooses what is measured: every row of other code, and a sample of the others.
static void choose(struct ab_run *run) {
    size_t tested = 0, same = 0;
    for (size_t i = 0; i < run->count; i++) {
        tested += !run->rows[i].same_code;
        same += run->rows[i].same_code;
    }
    const size_t controls = same < CONTROL_ROWS ? same : CONTROL_ROWS;
    const double floor = log1p(run->options->floor);
    ab_table_make(&run->tested, tested, floor, run->rate);
    ab_table_make(&run->control, controls, floor, run->rate);
    tested = 0;
    size_t seen = 0, taken = 0;
    for (size_t i = 0; i < run->count; i++) {
        struct ab_row *row = &run->rows[i];
        row->pairs = 1;
        if (!row->same_code) {
            row->table = &run->tested;
            row->index = tested++;
        } else {
            // Evenly over the list: all ops, kernels and shapes come in.
            if ((seen + 1) * controls >= (taken + 1) * same) {
                row->table = &run->control;
                row->index = taken++;
            }
            seen++;
        }
    }
}

/// Tells what became settled, where no progress line is shown.
static void tell_settled(const struct ab_run *run, const bool *was_open) {
    for (size_t i = 0; i < run->count && !isatty(STDERR_FILENO); i++) {
        const struct ab_row *row = &run->rows[i];
        if (was_open[i] && !is_open(row) && (!row->same_code || row->failed)) {
            char name[CASE_NAME_BYTES];
            row_name(run, row, name);
            const bool settled = series_of(row)->verdict != COMPARISON_INCONCLUSIVE;
            fprintf(stderr, "%s after %zu launches: %s%s%s\n",
                    settled       ? comparison_text(series_of(row)->verdict)
                    : row->failed ? "ERROR"
                                  : "given up",
                    row->launches, name, row->reason ? ": " : "", row->reason ? row->reason : "");
        }
    }
}

/// Tells whether another launch makes sense.
static bool go_on(struct state *s, double start_ns) {
    const struct ab_run *run = s->run;
    const size_t most = run->options->launches > 0 ? run->options->launches : (size_t)MOST_LAUNCHES;
    const double now = team_now_ns();
    if (run->interrupted || run->launches >= most) {
        return false;
    }
    if (count_open(run, &run->tested) == 0) {
        // The control alone: enough to show the noise.
        return count_open(run, &run->control) > 0 && run->launches < CONTROL_LAUNCHES &&
               now - start_ns + plan(s) < CONTROL_SHARE * run->budget_s * 1e9;
    }
    return run->launches == 0 || now + plan(s) <= s->end_ns;
}

int ab_run(struct ab_run *run) {
    const double start = team_now_ns();
    struct state s = {.run = run, .end_ns = start + run->budget_s * 1e9, .current = -1};
    choose(run);
    bool *was_open = diag_alloc(calloc(run->count + 1, sizeof(*was_open)));
    int code = EXIT_DONE;
    while (code == EXIT_DONE && go_on(&s, start)) {
        progress(&s);
        for (size_t i = 0; i < run->count; i++) {
            was_open[i] = is_open(&run->rows[i]);
        }
        plan(&s);
        code = launch(&s);
        // Looks between launches only: a launch that was cut short has visited rows in random
        // order.
        ab_table_look(&run->tested);
        ab_table_look(&run->control);
        if (run->launches <= 2) {
            fit_budget(&s);
        }
        tell_settled(run, was_open);
    }
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    free(was_open);
    return code;
}

void ab_run_free(struct ab_run *run) {
    for (size_t i = 0; i < run->count; i++) {
        for (size_t k = 0; k < AB_SIDES; k++) {
            free(run->rows[i].ns[k]);
        }
        free(run->rows[i].reason);
    }
    free(run->rows);
    ab_table_free(&run->tested);
    ab_table_free(&run->control);
}
