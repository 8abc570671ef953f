#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "op.h"
#include "protocol.h"
#include "stats.h"
#include "supervisor.h"
#include "team.h"
#include "tensors.h"

/// A share above this is our error of accounting, not a fast kernel.
#define SHARE_LIMIT 1.05

/// Version of the journal's lines.
enum { JOURNAL_VERSION = 1 };

// --- events -> rows
// -----------------------------------------------------------------------------------

static bool is_event(const json_t *event, const char *what) {
    return strcmp(protocol_get_string(event, "event"), what) == 0;
}

static void set_text(char **text, const char *value) {
    free(*text);
    *text = value[0] ? diag_alloc(strdup(value)) : NULL;
}

/// Reads a number that cannot be negative; NAN when it is not known, or no such number.
static double get_quantity(const json_t *event, const char *key) {
    const double value = protocol_get_real(event, key);
    return value >= 0 ? value : UNKNOWN;
}

static void apply_verdict(struct schedule *s, size_t i, const json_t *event) {
    struct row *row = &s->row[i];
    row->verdict = verdict_find(protocol_get_string(event, "verdict"));
    set_text(&row->reason, protocol_get_string(event, "reason"));
    row->max_ulp = get_quantity(event, "max_ulp");
    row->bound_share = get_quantity(event, "bound_share");
    row->checked_share = get_quantity(event, "checked_share");
    snprintf(s->hash[i], sizeof(s->hash[i]), "%s",
             row->verdict == VERDICT_PASSED ? protocol_get_string(event, "hash") : "");
}

static void apply_samples(struct schedule *s, size_t i, const json_t *event) {
    struct row *row = &s->row[i];
    const json_t *ns = json_object_get(event, "ns");
    // A journal may have been damaged: a time of nothing would make a row infinitely fast.
    bool good = json_array_size(ns) > 0;
    for (size_t k = 0; k < json_array_size(ns); k++) {
        good = good && json_number_value(json_array_get(ns, k)) > 0;
    }
    if (!good) {
        return;
    }
    row->samples = diag_alloc(realloc(row->samples, (row->launches + 1) * sizeof(*row->samples)));
    struct launch_samples *l = &row->samples[row->launches++];
    l->launch = s->launch;
    l->count = json_array_size(ns);
    l->ns = diag_alloc(calloc(l->count, sizeof(*l->ns)));
    for (size_t k = 0; k < l->count; k++) {
        l->ns[k] = json_number_value(json_array_get(ns, k));
    }
    row->iterations = (uint64_t)protocol_get_integer(event, "iterations");
    row->disturbed += (size_t)protocol_get_integer(event, "disturbed");
    row->effective_ghz = get_quantity(event, "ghz");
    row->pack_ns = get_quantity(event, "pack_ns");
    row->create_ns = get_quantity(event, "create_ns");
    row_add_steps(row, json_object_get(event, "steps"));
}

static void apply_ceiling(struct schedule *s, const json_t *event) {
    struct ceiling_samples c = {
        .problem = (size_t)protocol_get_integer(event, "problem"),
        .bytes = protocol_get_real(event, "bytes"),
        .threads = (int)protocol_get_integer(event, "threads"),
        .launch = s->launch,
    };
    snprintf(c.kernel, sizeof(c.kernel), "%s", protocol_get_string(event, "kernel"));
    snprintf(c.kind, sizeof(c.kind), "%s", protocol_get_string(event, "kind"));
    snprintf(c.isa, sizeof(c.isa), "%s", protocol_get_string(event, "isa"));
    snprintf(c.dtype, sizeof(c.dtype), "%s", protocol_get_string(event, "dtype"));
    snprintf(c.mix, sizeof(c.mix), "%s", protocol_get_string(event, "mix"));
    snprintf(c.level, sizeof(c.level), "%s", protocol_get_string(event, "level"));
    const json_t *values = json_object_get(event, "values");
    c.count = json_array_size(values);
    c.values = diag_alloc(calloc(c.count + 1, sizeof(*c.values)));
    for (size_t i = 0; i < c.count; i++) {
        c.values[i] = json_number_value(json_array_get(values, i));
    }
    s->ceiling = diag_alloc(realloc(s->ceiling, (s->ceilings + 1) * sizeof(*s->ceiling)));
    s->ceiling[s->ceilings++] = c;
}

/// Takes what an event says into the state; the same for live events and for a journal's.
static void apply(struct schedule *s, const json_t *event) {
    const size_t i = (size_t)protocol_get_integer(event, "case");
    const size_t problem = (size_t)protocol_get_integer(event, "problem");
    if (is_event(event, "verdict") && i < s->rows) {
        apply_verdict(s, i, event);
    } else if (is_event(event, "samples") && i < s->rows) {
        apply_samples(s, i, event);
    } else if (is_event(event, "ceiling") && problem < s->problems) {
        apply_ceiling(s, event);
    } else if (is_event(event, "problem") && problem < s->problems) {
        s->problem_done[problem] = true;
    } else if (is_event(event, "launch")) {
        s->launch = (size_t)protocol_get_integer(event, "launch") + 1;
        memset(s->problem_done, 0, s->problems * sizeof(*s->problem_done));
    }
}

// --- the journal
// --------------------------------------------------------------------------------------

static void journal_write(struct schedule *s, const json_t *event) {
    if (!s->journal_file) {
        return;
    }
    char *line = diag_alloc(json_dumps(event, JSON_COMPACT));
    if (fprintf(s->journal_file, "%s\n", line) < 0 || fflush(s->journal_file) != 0) {
        diag_note("the journal %s cannot be written (%s): an interrupted run could not be resumed",
                  s->journal, strerror(errno));
        fclose(s->journal_file);
        s->journal_file = NULL;
    }
    free(line);
}

/// What a journal must agree with to be gone on with: the rows, their code, the seed and the data.
static json_t *journal_header(const struct schedule *s) {
    json_t *rows = json_array();
    for (size_t i = 0; i < s->rows; i++) {
        char name[CASE_NAME_BYTES];
        const struct row *row = &s->row[i];
        problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
        json_array_append_new(rows,
                              json_pack("[s, s]", name, row->code_hash ? row->code_hash : ""));
    }
    const struct tensor_set *tensors = s->options->tensor_set;
    return json_pack("{s:i, s:I, s:s*, s:o}", "journal", JOURNAL_VERSION, "seed",
                     (json_int_t)s->options->seed, "tensors", tensors ? tensors->hash : NULL,
                     "rows", rows);
}

/// Events that count only once their problem is complete: what was cut off is measured again.
struct pending {
    json_t *events;
};

static void pending_apply(struct schedule *s, struct pending *pending) {
    for (size_t i = 0; i < json_array_size(pending->events); i++) {
        apply(s, json_array_get(pending->events, i));
    }
    json_array_clear(pending->events);
}

static void journal_event(struct schedule *s, struct pending *pending, json_t *event) {
    if (is_event(event, "samples") || is_event(event, "ceiling")) {
        json_array_append(pending->events, event);
    } else if (is_event(event, "resume")) {
        json_array_clear(pending->events);
    } else {
        if (is_event(event, "problem")) {
            pending_apply(s, pending);
        }
        apply(s, event);
    }
}

int schedule_read_journal(struct schedule *s, bool *torn) {
    FILE *file = fopen(s->journal, "re");
    if (!file) {
        diag_error("--resume: cannot read the journal %s: %s; there is nothing to go on with",
                   s->journal, strerror(errno));
        return EXIT_USAGE;
    }
    struct pending pending = {diag_alloc(json_array())};
    char *line = NULL;
    size_t size = 0, number = 0;
    ssize_t length = 0;
    bool fits = false;
    *torn = false;
    while ((length = getline(&line, &size, file)) > 0) {
        // A torn last line is not JSON, and is measured again.
        json_t *event = json_loadb(line, (size_t)length, JSON_REJECT_DUPLICATES, NULL);
        number++;
        *torn = line[length - 1] != '\n';
        if (number == 1) {
            json_t *header = journal_header(s);
            fits = event && json_equal(event, header);
            json_decref(header);
        } else if (event && fits) {
            journal_event(s, &pending, event);
        }
        json_decref(event);
    }
    free(line);
    fclose(file);
    json_decref(pending.events);
    if (!fits) {
        diag_error(
            "--resume: the journal %s is of another selection, seed, data or build: repeat the "
            "command that it belongs to, or remove it",
            s->journal);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int journal_open(struct schedule *s) {
    if (!s->journal) {
        return EXIT_DONE;
    }
    bool torn = false;
    if (s->options->resume) {
        const int code = schedule_read_journal(s, &torn);
        if (code != EXIT_DONE) {
            return code;
        }
    }
    s->journal_file = fopen(s->journal, s->options->resume ? "ae" : "we");
    if (!s->journal_file) {
        diag_error("--out: cannot write the journal %s: %s", s->journal, strerror(errno));
        return EXIT_USAGE;
    }
    if (torn) {
        fputc('\n', s->journal_file);  // or the first event to come would be torn with it
    }
    json_t *first = s->options->resume ? json_pack("{s:s}", "event", "resume") : journal_header(s);
    journal_write(s, first);
    json_decref(first);
    return EXIT_DONE;
}

// --- progress
// -----------------------------------------------------------------------------------------

static void progress(const struct schedule *s, const json_t *event) {
    if (s->quiet) {
        return;
    }
    const size_t i = (size_t)protocol_get_integer(event, "case");
    char name[CASE_NAME_BYTES] = "";
    if (i < s->rows) {
        const struct row *row = &s->row[i];
        problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    }
    if (isatty(STDERR_FILENO)) {
        size_t done = 0;
        for (size_t p = 0; p < s->problems; p++) {
            done += s->problem_done[p];
        }
        if (is_event(event, "start")) {
            fprintf(stderr, "\r\033[Klaunch %zu, problem %zu of %zu: %.60s", s->launch + 1,
                    done + 1, s->problems, name);
        }
    } else if (is_event(event, "verdict")) {
        const char *reason = protocol_get_string(event, "reason");
        fprintf(stderr, "%s %s%s%s\n", protocol_get_string(event, "verdict"), name,
                reason[0] ? ": " : "", reason);
    }
}

static void progress_clear(const struct schedule *s) {
    if (!s->quiet && isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
}

// --- launches
// -----------------------------------------------------------------------------------------

static void on_event(void *context, const json_t *event) {
    struct schedule *s = context;
    s->events++;
    if (is_event(event, "start")) {
        s->current = (long)protocol_get_integer(event, "case");
        snprintf(s->current_what, sizeof(s->current_what), "%s",
                 protocol_get_string(event, "what"));
        s->current_fault[0] = '\0';
    } else if (is_event(event, "fault")) {
        snprintf(s->current_fault, sizeof(s->current_fault), "%s",
                 protocol_get_string(event, "text"));
    } else {
        apply(s, event);
        journal_write(s, event);
    }
    progress(s, event);
}

/// Tells whether a row has something to do in further launches.
static bool alive(const struct schedule *s, size_t i) {
    const enum verdict v = s->row[i].verdict;
    return v == VERDICT_UNTESTED || (v == VERDICT_PASSED && s->hash[i][0] != '\0');
}

static json_t *make_job(const struct schedule *s, double seconds) {
    const struct machine *m = s->machine;
    json_t *problems = json_array();
    for (size_t p = 0; p < s->problems; p++) {
        json_t *cases = json_array();
        for (size_t i = 0; i < s->rows && !s->problem_done[p]; i++) {
            if (s->row_problem[i] == p && alive(s, i) && (!s->only_above || s->above[i])) {
                json_array_append_new(
                    cases, json_pack("{s:I, s:s, s:i, s:I, s:s}", "id", (json_int_t)i, "kernel",
                                     s->row[i].kernel, "threads", s->row[i].threads, "samples",
                                     (json_int_t)s->samples_wanted[i], "hash", s->hash[i]));
            }
        }
        if (json_array_size(cases) > 0) {
            json_array_append_new(
                problems, json_pack("{s:I, s:o, s:o}", "id", (json_int_t)p, "problem",
                                    protocol_problem_to_json(&s->problem[p]), "cases", cases));
        } else {
            json_decref(cases);
        }
    }
    json_t *plugins = json_array(), *benchmark = json_array();
    for (size_t i = 0; i < s->options->plugins.count; i++) {
        json_array_append_new(plugins, json_string(s->options->plugins.items[i]));
    }
    for (size_t i = 0; i < s->options->benchmark_args.count; i++) {
        json_array_append_new(benchmark, json_string(s->options->benchmark_args.items[i]));
    }
    const double min_time = schedule_min_time_s(s);
    const size_t last_level = m->l3_bytes ? m->l3_bytes : m->l2_bytes;
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:f, s:f, s:I, s:[I, I, I], s:b, s:o}", "mode",
        "measure", "plugins", plugins, "with", catalogue_with(s->options), "tensors",
        tensors_to_json(s->options), "benchmark_args", benchmark, "seed",
        (json_int_t)s->options->seed, "threads_allowed", (json_int_t)m->threads_allowed, "launch",
        (json_int_t)s->launch, "min_time_s", min_time, "seconds", seconds, "last_level_bytes",
        (json_int_t)last_level, "level_bytes", (json_int_t)m->l1_bytes, (json_int_t)m->l2_bytes,
        (json_int_t)m->l3_bytes, "emulated", catalogue_emulated(m), "problems", problems);
}

/// Shares the next launch's samples out: rows that are less certain than most get up to three times
/// as many, rows that are more certain fewer.
static void plan_samples(struct schedule *s) {
    double *width = diag_alloc(calloc(s->rows + 1, sizeof(*width)));
    size_t known = 0;
    for (size_t i = 0; i < s->rows; i++) {
        s->samples_wanted[i] = s->default_samples;
        if (s->row[i].launches > 0) {
            const struct launch_samples *l = &s->row[i].samples[s->row[i].launches - 1];
            const double spread = stats_spread(l->ns, l->count) / sqrt((double)l->count);
            if (isfinite(spread)) {
                width[known++] = spread;
            }
        }
    }
    const double usual = stats_median(width, known);
    free(width);
    for (size_t i = 0; i < s->rows && usual > 0; i++) {
        if (s->row[i].launches > 0) {
            const struct launch_samples *l = &s->row[i].samples[s->row[i].launches - 1];
            const double spread = stats_spread(l->ns, l->count) / sqrt((double)l->count);
            const double factor = isfinite(spread) ? fmin(3, fmax(0.5, spread / usual)) : 3;
            s->samples_wanted[i] = (size_t)fmax(2, round(factor * (double)s->default_samples));
        }
    }
}

static void mark_crashed(struct schedule *s, enum verdict verdict, const char *text) {
    char reason[600];
    snprintf(reason, sizeof(reason), "%s while %s%s%s", text, s->current_what,
             s->current_fault[0] ? ": " : "", s->current_fault);
    json_t *event =
        json_pack("{s:s, s:I, s:s, s:s}", "event", "verdict", "case", (json_int_t)s->current,
                  "verdict", verdict_text(verdict), "reason", reason);
    apply(s, event);
    journal_write(s, event);
    progress(s, event);
    json_decref(event);
    s->current = -1;
}

/// One launch: workers until every problem is done. Returns EXIT_DONE, or EXIT_USAGE.
static int launch(struct schedule *s, double seconds) {
    const struct supervisor supervisor = {s->machine, s->options->timeout_s, true, on_event, s};
    const double end_ns = team_now_ns() + seconds * 1e9;
    int silent = 0;
    for (;;) {
        s->current = -1;
        s->current_fault[0] = '\0';
        s->events = 0;
        const double left = seconds > 0 ? fmax(0.5, (end_ns - team_now_ns()) / 1e9) : 0;
        json_t *job = make_job(s, left);
        if (json_array_size(json_object_get(job, "problems")) == 0) {
            json_decref(job);
            return EXIT_DONE;
        }
        char text[256];
        const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
        json_decref(job);
        progress_clear(s);
        if (end == WORKER_INTERRUPTED) {
            s->interrupted = true;
            return EXIT_DONE;
        }
        if (end == WORKER_REFUSED) {
            return EXIT_USAGE;
        }
        if (end == WORKER_DONE) {
            return EXIT_DONE;
        }
        if (s->current >= 0 && (size_t)s->current < s->rows) {
            mark_crashed(s, end == WORKER_TIMEOUT ? VERDICT_TIMEOUT : VERDICT_CRASHED, text);
            silent = 0;
        } else if (++silent >= 3) {
            diag_error("the worker failed three times outside any kernel: %s", text);
            return EXIT_USAGE;
        }
    }
}

/// One launch to its end, noted in the journal.
static int whole_launch(struct schedule *s, double seconds) {
    plan_samples(s);
    const int code = launch(s, seconds);
    if (!s->interrupted && code == EXIT_DONE) {
        json_t *event = json_pack("{s:s, s:I}", "event", "launch", "launch", (json_int_t)s->launch);
        journal_write(s, event);
        apply(s, event);
        json_decref(event);
    }
    return code;
}

int schedule_again(struct schedule *s) {
    s->only_above = true;
    const int code = whole_launch(s, 0);
    s->only_above = false;
    return code;
}

void schedule_prepare(struct schedule *s) {
    s->problem_done = diag_alloc(calloc(s->problems + 1, sizeof(*s->problem_done)));
    s->hash = diag_alloc(calloc(s->rows + 1, sizeof(*s->hash)));
    s->samples_wanted = diag_alloc(calloc(s->rows + 1, sizeof(*s->samples_wanted)));
    s->above = diag_alloc(calloc(s->rows + 1, sizeof(*s->above)));
    s->launch = 0;
}

int schedule_run(struct schedule *s) {
    schedule_prepare(s);
    int code = journal_open(s);
    if (code != EXIT_DONE) {
        return code;
    }
    const double start = team_now_ns();
    const double budget = s->options->budget_s > 0 ? s->options->budget_s : s->default_budget_s;
    // Emulated, there is nothing to time: one launch verifies.
    const size_t launches = catalogue_emulated(s->machine) ? 1
                            : s->options->launches > 0     ? s->options->launches
                                                           : s->default_launches;
    while (s->launch < launches && !s->interrupted && code == EXIT_DONE) {
        const double used = (team_now_ns() - start) / 1e9;
        if (budget > 0 && used >= budget && s->launch > 0) {
            break;
        }
        // The first launch verifies too: it gets a double share.
        const double parts = (double)(launches - s->launch) + (s->launch == 0);
        const double share = (budget - used) / parts * (s->launch == 0 ? 2 : 1);
        code = whole_launch(s, budget > 0 ? fmax(0.5, share) : 0);
    }
    if (s->journal_file) {
        fclose(s->journal_file);
        s->journal_file = NULL;
    }
    return code;
}

// --- ceilings
// -----------------------------------------------------------------------------------------

/// Tells whether two sets of samples are of the same ceiling.
static bool same_ceiling(const struct ceiling_samples *a, const struct ceiling_samples *b) {
    return strcmp(a->kernel, b->kernel) == 0 && strcmp(a->level, b->level) == 0 &&
           a->threads == b->threads;
}

static size_t all_values(const struct schedule *s) {
    size_t n = 1;
    for (size_t i = 0; i < s->ceilings; i++) {
        n += s->ceiling[i].count;
    }
    return n;
}

/// Every launch.
#define ANY_LAUNCH SIZE_MAX

/// A ceiling's median, and the largest sample: what the machine can surely do.
struct roof {
    double usual;
    double most;
};

/// Gets the best of the ceilings beside a row's problem in a launch (or any) that have this kind,
/// an ISA that this one holds (NULL: any), and this mix (NULL: any) or its streaming form: what the
/// best way to do it reaches.
static struct roof roof_of(const struct schedule *s, size_t row, size_t launch, const char *kind,
                           const char *isa, const char *mix, double *scratch) {
    struct roof roof = {UNKNOWN, UNKNOWN};
    const size_t problem = s->row_problem[row];
    char streaming[32];
    snprintf(streaming, sizeof(streaming), "streaming %s", mix ? mix : "");
    for (size_t i = 0; i < s->ceilings; i++) {
        const struct ceiling_samples *c = &s->ceiling[i];
        if (c->problem != problem || c->threads != s->row[row].threads ||
            strcmp(c->kind, kind) != 0 || (isa && !catalogue_isa_holds(isa, c->isa)) ||
            (mix && strcmp(c->mix, mix) != 0 && strcmp(c->mix, streaming) != 0)) {
            continue;
        }
        size_t n = 0;
        for (size_t k = 0; k < s->ceilings; k++) {
            const struct ceiling_samples *o = &s->ceiling[k];
            if (o->problem == problem && same_ceiling(c, o) &&
                (launch == ANY_LAUNCH || o->launch == launch)) {
                memcpy(scratch + n, o->values, o->count * sizeof(*scratch));
                n += o->count;
            }
        }
        roof.usual = fmax(roof.usual, stats_median(scratch, n));
        roof.most = fmax(roof.most, stats_quantile(scratch, n, 1));
    }
    return roof;
}

/// What a row is held against: the time that each bound asks for, 0 where it asks for none.
struct bounds {
    double fma_ns, bandwidth_ns;
};

/// Gets the bounds beside a row in a launch (or any), of the ceilings' medians or their best
/// samples. UNKNOWN where there is no ceiling.
static struct bounds bounds_of(const struct schedule *s, size_t i, size_t launch, bool best,
                               double *scratch) {
    const struct row *row = &s->row[i];
    const struct op_driver *driver = op_find(row->problem.op);
    const struct roof fma = roof_of(s, i, launch, "fma", row->isa, NULL, scratch);
    const struct roof bandwidth = roof_of(s, i, launch, "bandwidth", NULL, driver->mix, scratch);
    // Beside reading, a few stores go on at the same time.
    double read, written;
    driver->bytes(&row->problem, &read, &written);
    const double bytes = strcmp(driver->mix, "read") == 0 ? read : read + written;
    return (struct bounds){row->flops > 0 ? row->flops / (best ? fma.most : fma.usual) : 0,
                           bytes / (best ? bandwidth.most : bandwidth.usual)};
}

/// Tells whether a share lies wholly above: in every launch the row's median and even the best
/// sample of the ceiling beside it do not reconcile. What disturbs a launch disturbs both.
static bool wholly_above(const struct schedule *s, size_t i, double *scratch) {
    const struct row *row = &s->row[i];
    bool above = false;
    for (size_t l = 0; l < row->launches; l++) {
        const struct launch_samples *samples = &row->samples[l];
        const struct bounds least = bounds_of(s, i, samples->launch, true, scratch);
        if (!(isfinite(least.fma_ns) && isfinite(least.bandwidth_ns))) {
            continue;  // a launch that crashed before it could say
        }
        above = fmax(least.fma_ns, least.bandwidth_ns) >
                SHARE_LIMIT * stats_median(samples->ns, samples->count);
        if (!above) {
            break;
        }
    }
    return above;
}

size_t schedule_shares(struct schedule *s, bool judge) {
    double *scratch = diag_alloc(calloc(all_values(s), sizeof(*scratch)));
    size_t above = 0;
    for (size_t i = 0; i < s->rows; i++) {
        struct row *row = &s->row[i];
        row->ceiling_kind = NULL;
        row->ceiling_share = UNKNOWN;
        s->above[i] = false;
        if (row->verdict != VERDICT_PASSED || !isfinite(row->median_ns)) {
            continue;
        }
        const struct bounds usual = bounds_of(s, i, ANY_LAUNCH, false, scratch);
        const double bound_ns = fmax(usual.fma_ns, usual.bandwidth_ns);
        if (!(isfinite(usual.fma_ns) && isfinite(usual.bandwidth_ns)) || bound_ns <= 0) {
            continue;
        }
        // Roofline: the slower of the two bounds is the ceiling.
        row->ceiling_kind = usual.fma_ns > usual.bandwidth_ns ? "fma" : "bandwidth";
        row->ceiling_share = bound_ns / row->median_ns;
        s->above[i] = wholly_above(s, i, scratch);
        above += s->above[i];
        if (judge && s->above[i]) {
            char reason[160];
            snprintf(reason, sizeof(reason),
                     "%.2f of the %s ceiling, above %.2f in every launch: flops, bytes or the "
                     "ceiling are wrong, or the kernel leaves out work",
                     row->ceiling_share, row->ceiling_kind, SHARE_LIMIT);
            row->verdict = VERDICT_ACCOUNTING;
            set_text(&row->reason, reason);
        }
    }
    free(scratch);
    return above;
}

/// Gets the word of a list that equals `text`; "" when none does. The list's words are static.
static const char *static_word(const char *text) {
    static const char *const words[] = {
        "fma",           "bandwidth", "L1",    "L2",   "L3",
        "DRAM",          "read",      "write", "copy", "streaming write",
        "streaming copy"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(words[i], text) == 0) {
            return words[i];
        }
    }
    return "";
}

static struct ceiling pool(const struct schedule *s, size_t i, double *values) {
    const struct ceiling_samples *c = &s->ceiling[i];
    struct ceiling out = {.kind = static_word(c->kind),
                          .level = static_word(c->level),
                          .mix = static_word(c->mix),
                          .threads = c->threads};
    snprintf(out.isa, sizeof(out.isa), "%s", c->isa);
    // A journal of an older build has none.
    snprintf(out.dtype, sizeof(out.dtype), "%s", c->dtype[0] ? c->dtype : "f32");
    size_t sets = 0;
    for (size_t k = 0; k < s->ceilings; k++) {
        if (same_ceiling(c, &s->ceiling[k])) {
            memcpy(values + out.samples, s->ceiling[k].values,
                   s->ceiling[k].count * sizeof(*values));
            out.samples += s->ceiling[k].count;
            out.bytes += s->ceiling[k].bytes;
            sets++;
        }
    }
    out.bytes /= (double)sets;
    out.value = stats_median(values, out.samples);
    out.spread = stats_spread(values, out.samples);
    return out;
}

void schedule_ceilings(const struct schedule *s, struct ceiling_list *list) {
    double *values = diag_alloc(calloc(all_values(s), sizeof(*values)));
    *list = (struct ceiling_list){0, diag_alloc(calloc(s->ceilings + 1, sizeof(*list->items)))};
    for (size_t i = 0; i < s->ceilings; i++) {
        const struct ceiling c = pool(s, i, values);
        struct ceiling *same = NULL;
        for (size_t k = 0; k < list->count; k++) {
            struct ceiling *o = &list->items[k];
            if (o->threads == c.threads && strcmp(o->isa, c.isa) == 0 &&
                strcmp(o->kind, c.kind) == 0 && strcmp(o->mix, c.mix) == 0 &&
                strcmp(o->level, c.level) == 0) {
                same = o;
            }
        }
        // Several kernels of one mix: the best is the ceiling.
        if (!same) {
            list->items[list->count++] = c;
        } else if (c.value > same->value) {
            *same = c;
        }
    }
    free(values);
}

void schedule_free(struct schedule *s) {
    for (size_t i = 0; i < s->ceilings; i++) {
        free(s->ceiling[i].values);
    }
    free(s->ceiling);
    free(s->problem_done);
    free(s->hash);
    free(s->samples_wanted);
    free(s->above);
}
