/// `mhabench check`: is it right? Every selected kernel that this CPU can run, over problems, data
/// classes and layouts. Timing is not involved.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "check_exponential.h"
#include "commands.h"
#include "diag.h"
#include "op.h"
#include "protocol.h"
#include "results.h"
#include "stats.h"
#include "supervisor.h"
#include "tensors.h"

/// One problem and its kernels' verdicts.
struct task {
    struct problem problem;
    bool lean;  ///< A size walk: ordinary data and special lanes only.
    bool done;
    size_t kernels;
    size_t *kernel;   ///< [kernels]: index into the catalogue.
    struct row *row;  ///< [kernels]
    size_t *runs;     ///< [kernels]
};

struct checking {
    const struct options *options;
    const struct machine *machine;
    const struct catalogue *catalogue;
    size_t tasks;
    struct task *task;
    int threads;  ///< Of the runs that share items out: the largest of --threads.
    bool progress;
    long current_task, current_kernel;
    char current_what[200];
    char current_fault[200];  ///< What the worker said of a fault, or "".
};

static void add_task(struct checking *c, const struct problem *problem, bool lean) {
    for (size_t i = 0; i < c->tasks; i++) {
        if (problem_equal(&c->task[i].problem, problem)) {
            return;
        }
    }
    struct task task = {.problem = *problem, .lean = lean};
    task.kernel = diag_alloc(calloc(c->catalogue->count + 1, sizeof(*task.kernel)));
    task.row = diag_alloc(calloc(c->catalogue->count + 1, sizeof(*task.row)));
    task.runs = diag_alloc(calloc(c->catalogue->count + 1, sizeof(*task.runs)));
    for (size_t i = 0; i < c->catalogue->count; i++) {
        const struct catalogue_kernel *k = &c->catalogue->kernels[i];
        if (k->runs && catalogue_selects(c->options, k) && catalogue_fits(k, problem)) {
            struct row *row = &task.row[task.kernels];
            row->problem = *problem;
            row->kernel = diag_alloc(strdup(k->name));
            row->isa = diag_alloc(strdup(k->isa));
            row->tag = diag_alloc(strdup(k->tag));
            row->code_hash = diag_alloc(strdup(k->code_hash));
            row->plugin = k->plugin ? diag_alloc(strdup(k->plugin)) : NULL;
            row->peer = k->peer;
            row->threads = c->threads;
            task.kernel[task.kernels++] = i;
        }
    }
    c->task = diag_alloc(realloc(c->task, (c->tasks + 1) * sizeof(*c->task)));
    c->task[c->tasks++] = task;
}

/// Adds a lean task for the problem in each position encoding that the op has by default, and of
/// each data class that is asked for.
static void add_in_each_position(struct checking *c, const struct op_driver *driver,
                                 const struct problem *problem) {
    const char *words = driver->positions ? driver->default_positions : "none";
    for (size_t length; *words != '\0'; words += length + (words[length] == ',')) {
        char word[32];
        length = strcspn(words, ",");
        snprintf(word, sizeof(word), "%.*s", (int)length, words);
        struct problem placed = *problem;
        if (problem_position_parse(&placed, word)) {
            driver->normalise(&placed);
            for (size_t d = 0; options_data(c->options, driver, &d, &placed.data);) {
                add_task(c, &placed, true);
            }
        }
    }
}

/// Walks each axis that decides a kernel's tails through 1 ... 2 step + 1, the others small and
/// odd.
static void add_size_walk(struct checking *c, const struct op_driver *driver) {
    size_t step = 0;
    for (size_t i = 0; i < c->catalogue->count; i++) {
        const struct catalogue_kernel *k = &c->catalogue->kernels[i];
        if (k->runs && catalogue_selects(c->options, k) && strcmp(k->op, driver->name) == 0) {
            step = k->step > step ? k->step : step;
        }
    }
    // A kernel's step may be a whole block; 64 covers every register tile and keeps the walk short.
    step = step > 64 ? 64 : step;
    const unsigned axes[] = {OP_AXIS_SEQ_Q, OP_AXIS_SEQ_KV, OP_AXIS_HEAD_DIM};
    for (size_t a = 0; a < sizeof(axes) / sizeof(axes[0]); a++) {
        for (size_t n = 1; (driver->axes & axes[a]) && step > 0 && n <= 2 * step + 1; n++) {
            struct problem problem = {.op = driver->name,
                                      .shape = {1, 2, 1, 3, 5, 7},
                                      .mask = MHA_MASK_NONE,
                                      .cache = CACHE_HOT};
            size_t *const at[] = {&problem.shape.seq_q, &problem.shape.seq_kv,
                                  &problem.shape.head_dim};
            *at[a] = n;
            for (size_t e = 0; e < ELEMENT_COUNT; e++) {
                problem.dtype = element_word(e);
                if (options_take(c->options, driver, (enum element)e)) {
                    add_in_each_position(c, driver, &problem);
                }
            }
        }
    }
}

static void repro_line(const struct checking *c, struct row *row) {
    char axes[1600], code[1000], line[4000];
    tensors_problem_options(axes, sizeof(axes), c->options, &row->problem);
    catalogue_repro(code, sizeof(code), c->options, row->problem.op, row->plugin);
    snprintf(line, sizeof(line), "./mhabench check --kernel %s %s --seed %llu%s", row->kernel, axes,
             (unsigned long long)c->options->seed, code);
    if (row->verdict == VERDICT_TIMEOUT) {
        const size_t used = strlen(line);
        snprintf(line + used, sizeof(line) - used, " --timeout %g", c->options->timeout_s);
    }
    row->repro = diag_alloc(strdup(line));
}

static void report_row(const struct checking *c, const struct row *row) {
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    if (c->progress) {
        fputs("\r\033[K", stderr);
    }
    const bool bad = verdict_exit(row->verdict) != EXIT_DONE;
    if (bad || c->options->verbose) {
        FILE *out = c->options->json ? stderr : stdout;
        fprintf(out, "%-11s %s%s%s\n", verdict_text(row->verdict), name,
                row->reason ? "\n    " : "", row->reason ? row->reason : "");
        if (bad) {
            fprintf(out, "    repeat: %s\n", row->repro);
        }
        fflush(out);
    }
}

static void settle_row(struct checking *c, struct row *row, enum verdict verdict,
                       const char *reason) {
    row->verdict = verdict;
    row->reason = reason[0] ? diag_alloc(strdup(reason)) : NULL;
    repro_line(c, row);
    report_row(c, row);
}

static long find_kernel(const struct task *task, const char *name) {
    for (size_t i = 0; i < task->kernels; i++) {
        if (strcmp(task->row[i].kernel, name) == 0) {
            return (long)i;
        }
    }
    return -1;
}

static void on_event(void *context, const json_t *event) {
    struct checking *c = context;
    const char *what = protocol_get_string(event, "event");
    const size_t t = (size_t)protocol_get_integer(event, "task");
    if (t >= c->tasks) {
        return;
    }
    struct task *task = &c->task[t];
    const long k = find_kernel(task, protocol_get_string(event, "kernel"));
    if (strcmp(what, "start") == 0) {
        c->current_task = (long)t;
        c->current_kernel = k;
        c->current_fault[0] = '\0';
        snprintf(c->current_what, sizeof(c->current_what), "%s",
                 protocol_get_string(event, "what"));
    } else if (strcmp(what, "fault") == 0) {
        snprintf(c->current_fault, sizeof(c->current_fault), "%s",
                 protocol_get_string(event, "text"));
    } else if (strcmp(what, "verdict") == 0 && k >= 0) {
        struct row *row = &task->row[k];
        row->max_ulp = protocol_get_real(event, "max_ulp");
        row->bound_share = protocol_get_real(event, "bound_share");
        row->checked_share = protocol_get_real(event, "checked_share");
        task->runs[k] = (size_t)protocol_get_integer(event, "runs");
        settle_row(c, row, verdict_find(protocol_get_string(event, "verdict")),
                   protocol_get_string(event, "reason"));
    } else if (strcmp(what, "task") == 0) {
        task->done = true;
        if (c->progress) {
            fprintf(stderr, "\r\033[Kchecked %zu of %zu problems (%s)", t + 1, c->tasks,
                    task->problem.op);
        }
    }
}

static json_t *make_job(const struct checking *c) {
    json_t *tasks = json_array(), *plugins = json_array();
    for (size_t t = 0; t < c->tasks; t++) {
        const struct task *task = &c->task[t];
        json_t *kernels = json_array();
        for (size_t k = 0; k < task->kernels && !task->done; k++) {
            if (task->row[k].verdict == VERDICT_UNTESTED) {
                json_array_append_new(kernels, json_string(task->row[k].kernel));
            }
        }
        if (json_array_size(kernels) > 0) {
            json_array_append_new(
                tasks, json_pack("{s:I, s:o, s:o, s:b}", "id", (json_int_t)t, "problem",
                                 protocol_problem_to_json(&task->problem), "kernels", kernels,
                                 "lean", task->lean));
        } else {
            json_decref(kernels);
        }
    }
    for (size_t i = 0; i < c->options->plugins.count; i++) {
        json_array_append_new(plugins, json_string(c->options->plugins.items[i]));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:b, s:o}", "mode", "check", "plugins",
                     plugins, "with", catalogue_with(c->options), "tensors",
                     tensors_to_json(c->options), "seed", (json_int_t)c->options->seed,
                     "threads_allowed", (json_int_t)c->threads, "emulated",
                     catalogue_emulated(c->machine), "tasks", tasks);
}

/// Runs workers until every task is done. Returns EXIT_DONE or EXIT_USAGE.
static int run_workers(struct checking *c) {
    const struct supervisor supervisor = {c->machine, c->options->timeout_s, false, on_event, c};
    int silent = 0;
    for (;;) {
        c->current_task = -1;
        c->current_kernel = -1;
        c->current_fault[0] = '\0';
        json_t *job = make_job(c);
        if (json_array_size(json_object_get(job, "tasks")) == 0) {
            json_decref(job);
            return EXIT_DONE;
        }
        char text[256], reason[512];
        const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
        json_decref(job);
        if (end == WORKER_DONE || end == WORKER_INTERRUPTED) {
            return EXIT_DONE;
        }
        if (end == WORKER_REFUSED) {
            return EXIT_USAGE;
        }
        if (c->current_task >= 0 && c->current_kernel >= 0) {
            silent = 0;
            snprintf(reason, sizeof(reason), "%s: %s%s%s", c->current_what, text,
                     c->current_fault[0] ? ": " : "", c->current_fault);
            struct row *row = &c->task[c->current_task].row[c->current_kernel];
            row->max_ulp = row->bound_share = row->checked_share = UNKNOWN;
            settle_row(c, row, end == WORKER_TIMEOUT ? VERDICT_TIMEOUT : VERDICT_CRASHED, reason);
        } else if (++silent >= 3) {
            diag_error("the worker failed three times outside any kernel: %s", text);
            return EXIT_USAGE;
        }
    }
}

/// One kernel's line of the summary: all its problems together.
static int summarise(const struct checking *c, size_t kernel, FILE *out) {
    size_t counts[VERDICT_ACCOUNTING + 1] = {0}, problems = 0, runs = 0;
    double ulp = 0, share = 0;
    const struct row *worst = NULL;
    int code = EXIT_DONE;
    bool wrong = false;
    for (size_t t = 0; t < c->tasks; t++) {
        for (size_t k = 0; k < c->task[t].kernels; k++) {
            const struct row *row = &c->task[t].row[k];
            if (c->task[t].kernel[k] != kernel) {
                continue;
            }
            problems++;
            counts[row->verdict]++;
            runs += c->task[t].runs[k];
            code = diag_worst(code, verdict_exit(row->verdict));
            // What an interrupt left out is no fault of the kernel.
            wrong = wrong ||
                    (row->verdict != VERDICT_UNTESTED && verdict_exit(row->verdict) != EXIT_DONE);
            ulp = isfinite(row->max_ulp) ? fmax(ulp, row->max_ulp) : ulp;
            if (isfinite(row->bound_share) && row->bound_share >= share) {
                share = row->bound_share;
                worst = row;
            }
        }
    }
    if (problems == 0) {
        return EXIT_DONE;
    }
    const bool exact = op_find(c->catalogue->kernels[kernel].op)->compare == COMPARE_BITS;
    const char *word = wrong                                     ? "WRONG"
                       : counts[VERDICT_UNTESTED] > 0            ? "UNTESTED"
                       : counts[VERDICT_UNSUPPORTED] == problems ? "UNSUPPORTED"
                                                                 : "PASSED";
    fprintf(out, "%-11s %-36s %4zu problems %6zu runs", word, c->catalogue->kernels[kernel].name,
            problems, runs);
    if (exact) {
        fprintf(out, "  bit-exact\n");
    } else {
        char where[CASE_NAME_BYTES] = "";
        if (worst && share > 0) {
            problem_case_name(where, &worst->problem, worst->isa, worst->tag, worst->threads);
        }
        fprintf(out, "  max %6.3g ulp, %5.3f of the bound%s%s\n", ulp, share,
                where[0] ? " at " : "", where);
    }
    for (int v = VERDICT_UNTESTED; v <= VERDICT_ACCOUNTING; v++) {
        if (counts[v] > 0 && v != VERDICT_PASSED) {
            fprintf(out, "            %zu %s\n", counts[v], verdict_text((enum verdict)v));
        }
    }
    return code;
}

static int print_json(const struct checking *c, const struct exponential_list *exponentials) {
    struct result result = {.context = results_context_base("mhabench")};
    json_object_set_new(
        result.context, "mhabench",
        json_pack("{s:i, s:s, s:I, s:o*, s:o}", "schema_version", RESULTS_SCHEMA_VERSION, "command",
                  "check", "seed", (json_int_t)c->options->seed, "tensors",
                  tensors_to_json(c->options), "machine", machine_to_json(c->machine)));
    json_t *rows = json_array();
    for (size_t t = 0; t < c->tasks; t++) {
        for (size_t k = 0; k < c->task[t].kernels; k++) {
            json_array_append_new(rows, row_to_json(&c->task[t].row[k]));
        }
    }
    json_t *all = json_pack("{s:o, s:o, s:o}", "context", result.context, "checks", rows,
                            "exponentials", exponential_to_json(exponentials, c->options));
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
    return EXIT_DONE;
}

static void free_tasks(struct checking *c) {
    for (size_t t = 0; t < c->tasks; t++) {
        for (size_t k = 0; k < c->task[t].kernels; k++) {
            row_free(&c->task[t].row[k]);
        }
        free(c->task[t].kernel);
        free(c->task[t].row);
        free(c->task[t].runs);
    }
    free(c->task);
}

/// Tells whether the user left the shapes to us: then the size walk comes too.
static bool default_shapes(const struct options *o) {
    return o->presets.count + o->batch.count + o->heads.count + o->kv_heads.count +
               o->head_dim.count + o->seq.count + o->seq_q.count + o->seq_kv.count ==
           0;
}

static int check(const struct options *options, const struct machine *machine) {
    struct catalogue catalogue;
    struct selection selection = {0};
    struct exponential_list exponentials = {0};
    struct checking c = {.options = options, .machine = machine, .catalogue = &catalogue};
    int code = catalogue_load(&catalogue, options, machine);
    if (code == EXIT_DONE) {
        code = catalogue_require(&catalogue, options);
    }
    if (code == EXIT_DONE) {
        code = options_select(options, machine->threads_allowed, &selection);
    }
    if (code == EXIT_DONE) {
        for (size_t i = 0; i < selection.threads.count; i++) {
            const int threads = (int)selection.threads.items[i];
            c.threads = threads > c.threads ? threads : c.threads;
        }
        for (size_t i = 0; i < selection.count; i++) {
            add_task(&c, &selection.problems[i], false);
        }
        for (size_t o = 0; o < op_count() && default_shapes(options); o++) {
            add_size_walk(&c, op_get(o));
        }
        c.progress = isatty(STDERR_FILENO);
        supervisor_catch_signals();
        code = run_workers(&c);
        if (code == EXIT_DONE && !supervisor_interrupted) {
            code = exponential_check(&exponentials, options, machine, &catalogue, c.threads,
                                     c.progress);
        }
        if (c.progress) {
            fputs("\r\033[K", stderr);
        }
    }
    if (code == EXIT_DONE) {
        for (size_t i = 0; i < catalogue.count; i++) {
            code = diag_worst(code, summarise(&c, i, options->json ? stderr : stdout));
        }
        code = diag_worst(
            code, exponential_report(&exponentials, options, options->json ? stderr : stdout));
        if (options->json) {
            print_json(&c, &exponentials);
        }
        size_t absent = 0;
        for (size_t i = 0; i < catalogue.count; i++) {
            absent +=
                !catalogue.kernels[i].runs && catalogue_selects(options, &catalogue.kernels[i]);
        }
        if (absent > 0) {
            diag_note("%zu kernels of the selection cannot run here (see `mhabench list`)", absent);
        }
    }
    exponential_free(&exponentials);
    free_tasks(&c);
    selection_free(&selection);
    catalogue_free(&catalogue);
    supervisor_obey_interrupt();
    return code;
}

int cmd_check(const struct options *options, const struct machine *machine) {
    struct tensor_options prepared;
    int code = tensors_options(options, &prepared);
    if (code == EXIT_DONE) {
        code = check(&prepared.own, machine);
    }
    tensors_options_free(&prepared);
    return code;
}
