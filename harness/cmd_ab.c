/// `mhabench ab`: two builds of the kernels against each other, side by side in one process.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ab.h"
#include "catalogue.h"
#include "commands.h"
#include "comparison.h"
#include "diag.h"
#include "protocol.h"
#include "report.h"
#include "stats.h"
#include "supervisor.h"

/// What a user waits for beside a build.
#define DEFAULT_BUDGET_S 120.0

/// False discovery rate that each set of verdicts holds.
#define ERROR_RATE 0.01

static const char method[] =
    "sequential sign test over launches (one-sided beta-binomial mixture, Howard et al. 2021), "
    "false discovery rate by e-BH (Wang and Ramdas 2022), valid whenever it stops";

struct comparing {
    const struct options *options;
    const struct machine *machine;
    char paths[AB_SIDES][PATH_MAX + 64];
    char copy[64];  ///< Temporary copy of a library that is both sides; "" for none.
    struct catalogue catalogues[AB_SIDES];
    struct selection selection;
    struct ab_run run;
};

// --- the libraries
// -------------------------------------------------------------------------------------

/// Copies a file, so that the loader takes it for another library.
static int copy_file(const char *from, char *to, size_t size) {
    char buffer[65536];
    snprintf(to, size, "/tmp/mhabench-ab-XXXXXX");
    FILE *in = fopen(from, "re");
    const int descriptor = in ? mkstemp(to) : -1;
    FILE *out = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool good = out != NULL;
    size_t count = 0;
    while (good && (count = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        good = fwrite(buffer, 1, count, out) == count;
    }
    good = good && !ferror(in);
    good = out && fclose(out) == 0 && good;
    const int why = errno;
    if (in) {
        fclose(in);
    }
    if (!good) {
        if (descriptor >= 0) {
            remove(to);
        }
        to[0] = '\0';
        diag_error("%s cannot be copied to /tmp: %s", from, strerror(why));
    }
    return good ? EXIT_DONE : EXIT_USAGE;
}

static int find_libraries(struct comparing *c) {
    struct stat info[AB_SIDES];
    for (size_t k = 0; k < AB_SIDES; k++) {
        const int code =
            ab_library(c->options->operands.items[k], c->paths[k], sizeof(c->paths[k]));
        if (code != EXIT_DONE || supervisor_interrupted) {
            return code;
        }
        if (stat(c->paths[k], &info[k]) != 0) {
            diag_error("%s: %s", c->paths[k], strerror(errno));
            return EXIT_USAGE;
        }
    }
    if (info[AB_BASE].st_dev == info[AB_NEW].st_dev &&
        info[AB_BASE].st_ino == info[AB_NEW].st_ino) {
        const int code = copy_file(c->paths[AB_NEW], c->copy, sizeof(c->copy));
        snprintf(c->paths[AB_NEW], sizeof(c->paths[AB_NEW]), "%s", c->copy);
        return code;
    }
    return EXIT_DONE;
}

static void on_kernel(void *context, const json_t *event) {
    struct comparing *c = context;
    const size_t side = (size_t)protocol_get_integer(event, "side");
    if (side < AB_SIDES && strcmp(protocol_get_string(event, "event"), "kernel") == 0) {
        catalogue_add(&c->catalogues[side], event, c->options->max_isa);
    }
}

static int load_catalogues(struct comparing *c) {
    const struct supervisor supervisor = {c->machine, c->options->timeout_s, false, on_kernel, c};
    json_t *job = json_pack("{s:s, s:s, s:s}", "mode", "ab", "base", c->paths[AB_BASE], "new",
                            c->paths[AB_NEW]);
    if (!job) {
        diag_error("the names of the libraries must be UTF-8");
        return EXIT_USAGE;
    }
    char text[PATH_MAX];
    const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
    json_decref(job);
    if (end == WORKER_CRASHED || end == WORKER_TIMEOUT) {
        diag_error("the libraries cannot be loaded: %s", text);
    }
    return end == WORKER_DONE ? EXIT_DONE : EXIT_USAGE;
}

// --- the rows
// ------------------------------------------------------------------------------------------

static const struct catalogue_kernel *find_kernel(const struct catalogue *catalogue,
                                                  const char *name) {
    for (size_t i = 0; i < catalogue->count; i++) {
        if (strcmp(catalogue->kernels[i].name, name) == 0) {
            return &catalogue->kernels[i];
        }
    }
    return NULL;
}

/// Calls `add` for every problem and thread count of a kernel.
static void for_each_case(struct comparing *c, const struct catalogue_kernel *kernel,
                          void (*add)(void *context, const struct catalogue_kernel *kernel,
                                      size_t problem, int threads),
                          void *context) {
    for (size_t p = 0; p < c->selection.count; p++) {
        if (!catalogue_fits(kernel, &c->selection.problems[p])) {
            continue;
        }
        for (size_t t = 0; t < c->selection.threads.count; t++) {
            add(context, kernel, p, (int)c->selection.threads.items[t]);
        }
    }
}

static void add_row(void *context, const struct catalogue_kernel *kernel, size_t problem,
                    int threads) {
    struct comparing *c = context;
    const struct catalogue_kernel *base = find_kernel(&c->catalogues[AB_BASE], kernel->name);
    struct ab_run *run = &c->run;
    run->rows = diag_alloc(realloc(run->rows, (run->count + 1) * sizeof(*run->rows)));
    run->rows[run->count++] = (struct ab_row){
        .problem = problem,
        .kernel = kernel->name,
        .isa = kernel->isa,
        .tag = kernel->tag,
        .threads = threads,
        .same_code =
            kernel->code_hash[0] != '\0' && strcmp(kernel->code_hash, base->code_hash) == 0,
    };
}

/// Makes a row of every case that both sides have.
static void make_rows(struct comparing *c) {
    const struct catalogue *now = &c->catalogues[AB_NEW];
    for (size_t i = 0; i < now->count; i++) {
        const struct catalogue_kernel *k = &now->kernels[i];
        if (k->runs && catalogue_selects(c->options, k) &&
            find_kernel(&c->catalogues[AB_BASE], k->name)) {
            for_each_case(c, k, add_row, c);
        }
    }
}

// --- the report
// ----------------------------------------------------------------------------------------

__attribute__((format(printf, 2, 3))) static void add_note(struct comparison_report *report,
                                                           const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    const int length = vasprintf(&text, format, list);
    va_end(list);
    report->note = diag_alloc(realloc(report->note, (report->notes + 1) * sizeof(*report->note)));
    report->note[report->notes++] = diag_alloc(length < 0 ? NULL : text);
}

static char *copy(const char *text) {
    return diag_alloc(strdup(text));
}

static struct comparison *add_comparison(struct comparison_report *report,
                                         const struct problem *problem, const char *kernel,
                                         const char *isa, const char *tag, int threads) {
    char name[CASE_NAME_BYTES];
    problem_case_name(name, problem, isa, tag, threads);
    report->rows = diag_alloc(realloc(report->rows, (report->count + 1) * sizeof(*report->rows)));
    struct comparison *row = &report->rows[report->count++];
    *row = (struct comparison){
        .name = copy(name),
        .kernel = copy(kernel),
        .op = copy(problem->op),
        .base_ns = UNKNOWN,
        .new_ns = UNKNOWN,
        .change = UNKNOWN,
        .low = UNKNOWN,
        .high = UNKNOWN,
        .smallest_effect = UNKNOWN,
        .verdict = COMPARISON_ERROR,
    };
    return row;
}

/// Verdict and reason of a measured row.
static void judge(const struct comparing *c, const struct ab_row *row, struct comparison *out) {
    const struct ab_series *series = &row->table->series[row->index];
    const struct ab_estimate e = ab_table_estimate(row->table, row->index);
    out->base_ns = row->launches ? stats_median(row->ns[AB_BASE], row->launches) : UNKNOWN;
    out->new_ns = row->launches ? stats_median(row->ns[AB_NEW], row->launches) : UNKNOWN;
    out->change = e.change;
    out->low = e.low;
    out->high = e.high;
    out->smallest_effect = e.smallest_effect;
    out->launches = row->launches;
    out->verdict = series->verdict;
    if (row->same_code && !row->failed) {
        out->reason = copy("identical machine code");
    } else if (row->reason) {
        out->reason = copy(row->reason);
    } else if (series->verdict == COMPARISON_INCONCLUSIVE) {
        out->reason = copy(c->run.interrupted ? "interrupted" : "the budget ended first");
    }
    if (row->failed) {
        out->verdict = COMPARISON_ERROR;
    } else if (row->same_code) {
        const bool drifts =
            series->verdict == COMPARISON_SLOWER || series->verdict == COMPARISON_FASTER;
        out->verdict = drifts ? COMPARISON_ENV_DRIFT : COMPARISON_SAME;
    }
}

static void report_rows(const struct comparing *c, struct comparison_report *report) {
    for (size_t i = 0; i < c->run.count; i++) {
        const struct ab_row *row = &c->run.rows[i];
        if (row->lacking[AB_BASE] && row->lacking[AB_NEW]) {
            continue;  // no such case on either side
        }
        struct comparison *out = add_comparison(report, &c->selection.problems[row->problem],
                                                row->kernel, row->isa, row->tag, row->threads);
        out->same_code = row->same_code;
        if (row->lacking[AB_BASE] || row->lacking[AB_NEW]) {
            out->verdict = row->lacking[AB_NEW] ? COMPARISON_MISSING : COMPARISON_NEW;
            out->reason = row->reason ? copy(row->reason) : NULL;
        } else if (row->table) {
            judge(c, row, out);
            // A row with too few launches for an interval tells nothing of the others.
            if (row->same_code && !row->failed && isfinite(out->low) &&
                !(fabs(out->change) <= report->noise_floor)) {
                report->noise_floor = fabs(out->change);
            }
        } else {
            out->verdict = COMPARISON_SAME;
            out->reason = copy("identical machine code; not among the measured ones");
        }
    }
}

struct one_sided {
    const struct comparing *c;
    struct comparison_report *report;
    enum comparison_verdict verdict;
};

static void add_one_sided(void *context, const struct catalogue_kernel *kernel, size_t problem,
                          int threads) {
    const struct one_sided *o = context;
    struct comparison *row = add_comparison(o->report, &o->c->selection.problems[problem],
                                            kernel->name, kernel->isa, kernel->tag, threads);
    row->verdict = o->verdict;
}

/// Rows of the kernels that only one side has.
static void report_one_sided(struct comparing *c, struct comparison_report *report,
                             enum ab_side side) {
    struct one_sided o = {c, report, side == AB_BASE ? COMPARISON_MISSING : COMPARISON_NEW};
    const enum ab_side other = side == AB_BASE ? AB_NEW : AB_BASE;
    for (size_t i = 0; i < c->catalogues[side].count; i++) {
        const struct catalogue_kernel *k = &c->catalogues[side].kernels[i];
        if (k->runs && catalogue_selects(c->options, k) &&
            !find_kernel(&c->catalogues[other], k->name)) {
            for_each_case(c, k, add_one_sided, &o);
        }
    }
}

static void add_notes(const struct comparing *c, struct comparison_report *report) {
    size_t same = 0, measured = 0;
    for (size_t i = 0; i < c->run.count; i++) {
        same += c->run.rows[i].same_code;
        measured += c->run.rows[i].same_code && c->run.rows[i].launches > 0;
    }
    if (same > 0 && same == c->run.count) {
        add_note(report, "the machine code of all %zu rows is identical", same);
    } else if (same > 0) {
        add_note(report, "the machine code of %zu of %zu rows is identical", same, c->run.count);
    }
    if (same > 0) {
        add_note(report, "%zu rows of identical machine code were measured as the control",
                 measured);
    }
    add_note(report, "%zu launches", c->run.launches);
    if (c->run.interrupted) {
        add_note(report, "interrupted");
    }
}

static int report(struct comparing *c) {
    struct comparison_report out = {
        .command = copy("ab"),
        .base_label = copy(c->options->operands.items[AB_BASE]),
        .new_label = copy(c->options->operands.items[AB_NEW]),
        .floor = c->options->floor,
        .error_rate = ERROR_RATE,
        .noise_floor = UNKNOWN,
        .method = copy(method),
    };
    report_rows(c, &out);
    report_one_sided(c, &out, AB_BASE);
    report_one_sided(c, &out, AB_NEW);
    add_notes(c, &out);
    int code = report_print(&out, c->options);
    if (code == EXIT_DONE && out.count == 0) {
        diag_error("no kernel that runs here does any of the selected problems");
        code = EXIT_CANNOT_RUN;
    }
    code = diag_worst(code, comparison_exit(&out, c->options->gate));
    comparison_free(&out);
    return code;
}

static int measure(struct comparing *c) {
    const struct options *o = c->options;
    c->run.machine = c->machine;
    c->run.options = o;
    c->run.paths[AB_BASE] = c->paths[AB_BASE];
    c->run.paths[AB_NEW] = c->paths[AB_NEW];
    c->run.problems = c->selection.problems;
    c->run.budget_s = o->budget_s > 0 ? o->budget_s : DEFAULT_BUDGET_S;
    c->run.rate = ERROR_RATE;
    make_rows(c);
    return ab_run(&c->run);
}

int cmd_ab(const struct options *options, const struct machine *machine) {
    struct comparing *c = diag_alloc(calloc(1, sizeof(*c)));
    c->options = options;
    c->machine = machine;
    int code = EXIT_DONE;
    supervisor_catch_signals();
    if (catalogue_emulated(machine)) {
        diag_error("ab measures, and under an emulator no time means anything");
        code = EXIT_CANNOT_RUN;
    }
    if (code == EXIT_DONE) {
        code = find_libraries(c);
    }
    if (code == EXIT_DONE && !supervisor_interrupted) {
        code = load_catalogues(c);
    }
    // What only the base has is as much asked for as what only the new one has.
    if (code == EXIT_DONE && !supervisor_interrupted) {
        bool any = false;
        for (size_t i = 0; i < c->catalogues[AB_BASE].count; i++) {
            const struct catalogue_kernel *k = &c->catalogues[AB_BASE].kernels[i];
            any = any || (k->runs && catalogue_selects(options, k));
        }
        code = any ? EXIT_DONE : catalogue_require(&c->catalogues[AB_NEW], options);
    }
    if (code == EXIT_DONE && !supervisor_interrupted) {
        code = options_select(options, machine->threads_allowed, &c->selection);
    }
    if (code == EXIT_DONE && !supervisor_interrupted) {
        code = measure(c);
        if (code == EXIT_DONE) {
            code = report(c);
        }
    }
    if (c->copy[0]) {
        remove(c->copy);
    }
    ab_run_free(&c->run);
    selection_free(&c->selection);
    for (size_t k = 0; k < AB_SIDES; k++) {
        catalogue_free(&c->catalogues[k]);
    }
    free(c);
    supervisor_obey_interrupt();
    return code;
}
