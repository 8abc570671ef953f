/// `mhabench run`: how fast, beside its peers and the machine's ceilings; and right, or there is no
/// number.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "catalogue.h"
#include "commands.h"
#include "diag.h"
#include "op.h"
#include "protocol.h"
#include "results.h"
#include "run_context.h"
#include "schedule.h"
#include "stats.h"
#include "supervisor.h"

/// `quick`, the default, is meant to end within a minute on two cores.
#define QUICK_BUDGET_S 42.0

enum { DEFAULT_LAUNCHES = 5, QUICK_LAUNCHES = 3, DEFAULT_SAMPLES = 5 };

#define DEFAULT_MIN_TIME_S 0.01

/// Everything that one run owns.
struct running {
    const struct options *options;
    const struct machine *machine;
    struct catalogue catalogue;
    struct selection selection;
    struct result result;
    size_t *row_problem;
    char out[512], journal[600];
    json_int_t started;
};

static void add_row(struct running *r, size_t problem, const struct catalogue_kernel *k,
                    int threads) {
    struct row row = {
        .problem = r->selection.problems[problem],
        .kernel = diag_alloc(strdup(k->name)),
        .isa = diag_alloc(strdup(k->isa)),
        .tag = diag_alloc(strdup(k->tag)),
        .peer = k->peer,
        .plugin = k->plugin ? diag_alloc(strdup(k->plugin)) : NULL,
        .threads = threads,
        .code_hash = diag_alloc(strdup(k->code_hash)),
        .max_ulp = UNKNOWN,
        .bound_share = UNKNOWN,
        .checked_share = UNKNOWN,
        .effective_ghz = UNKNOWN,
        .pack_ns = UNKNOWN,
        .create_ns = UNKNOWN,
        .ceiling_share = UNKNOWN,
    };
    const struct op_driver *driver = op_find(row.problem.op);
    double read, written;
    driver->bytes(&row.problem, &read, &written);
    row.bytes = read + written;
    row.flops = driver->flops(&row.problem) * (k->flops_per_step > 0 ? k->flops_per_step : 1);
    char axes[300], line[1200];
    problem_options(axes, sizeof(axes), &row.problem);
    snprintf(line, sizeof(line), "./mhabench run --kernel %s %s --threads %d --seed %llu%s%s",
             k->name, axes, threads, (unsigned long long)r->options->seed,
             k->plugin ? " --plugin " : "", k->plugin ? k->plugin : "");
    row.repro = diag_alloc(strdup(line));
    struct result *result = &r->result;
    result->rows = diag_alloc(realloc(result->rows, (result->count + 1) * sizeof(*result->rows)));
    r->row_problem =
        diag_alloc(realloc(r->row_problem, (result->count + 1) * sizeof(*r->row_problem)));
    r->row_problem[result->count] = problem;
    result->rows[result->count++] = row;
}

static void make_rows(struct running *r) {
    for (size_t p = 0; p < r->selection.count; p++) {
        for (size_t i = 0; i < r->catalogue.count; i++) {
            const struct catalogue_kernel *k = &r->catalogue.kernels[i];
            for (size_t t = 0; t < r->selection.threads.count; t++) {
                if (k->runs && catalogue_selects(r->options, k) &&
                    strcmp(k->op, r->selection.problems[p].op) == 0) {
                    add_row(r, p, k, (int)r->selection.threads.items[t]);
                }
            }
        }
    }
}

static void choose_out(struct running *r) {
    if (r->options->out) {
        snprintf(r->out, sizeof(r->out), "%s", r->options->out);
    } else {
        const time_t now = time(NULL);
        struct tm local;
        localtime_r(&now, &local);
        strftime(r->out, sizeof(r->out), "mhabench-%Y%m%d-%H%M%S.json", &local);
    }
    snprintf(r->journal, sizeof(r->journal), "%s.journal", r->out);
}

/// A pipe or a device gets no journal beside it.
static bool is_regular(const char *path) {
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/// Says why a row has no time.
static void finish_rows(struct running *r, const struct schedule *s) {
    for (size_t i = 0; i < r->result.count; i++) {
        struct row *row = &r->result.rows[i];
        const bool untimed = row->verdict == VERDICT_PASSED && row->launches == 0;
        if (row->verdict == VERDICT_UNTESTED || (untimed && !catalogue_emulated(r->machine))) {
            row->verdict = VERDICT_SKIPPED;
            free(row->reason);
            row->reason =
                diag_alloc(strdup(s->interrupted ? "interrupted before its first sample"
                                                 : "the budget ended before its first sample"));
        } else if (untimed) {
            free(row->reason);
            row->reason = diag_alloc(strdup("emulated: checked, never timed"));
        }
    }
}

static bool quick_only(const struct options *o) {
    return o->presets.count == 0 ||
           (o->presets.count == 1 && strcmp(o->presets.items[0], "quick") == 0);
}

static int measure(struct running *r, struct schedule *s) {
    int code = schedule_run(s);
    if (code != EXIT_DONE) {
        return code;
    }
    results_derive(&r->result);
    if (schedule_shares(s, false) > 0 && !s->interrupted && !catalogue_emulated(r->machine)) {
        // A share above its ceiling is measured once more before it is called an error of ours.
        diag_note("a share lies above its ceiling: one more launch");
        code = schedule_more(s, 1);
        results_derive(&r->result);
    }
    schedule_shares(s, true);
    finish_rows(r, s);
    results_derive(&r->result);
    return code;
}

static int report(struct running *r, const struct schedule *s) {
    struct ceiling_list ceilings;
    schedule_ceilings(s, &ceilings);
    r->result.context = run_context(r->options, r->machine, &r->catalogue, &ceilings,
                                    schedule_min_time_s(s), r->started, s->interrupted);
    ceilings_free(&ceilings);
    json_t *json = results_to_json(&r->result);
    int code = results_write(json, r->out);
    if (r->options->json) {
        json_dumpf(json, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        results_table(&r->result, stdout, commands_color(r->options, STDOUT_FILENO));
    }
    json_decref(json);
    if (fflush(stdout) != 0) {
        diag_error("stdout cannot be written");
        code = EXIT_USAGE;
    }
    if (code == EXIT_DONE) {
        fprintf(stderr, "written to %s\n", r->out);
        if (s->interrupted) {
            diag_note("interrupted: the same command with --resume --out %s goes on", r->out);
        } else {
            remove(r->journal);
        }
    }
    return code;
}

int cmd_run(const struct options *options, const struct machine *machine) {
    struct running r = {.options = options, .machine = machine, .started = (json_int_t)time(NULL)};
    int code = run_context_check(options);
    if (code == EXIT_DONE) {
        code = catalogue_load(&r.catalogue, options, machine);
    }
    if (code == EXIT_DONE) {
        code = catalogue_require(&r.catalogue, options);
    }
    if (code == EXIT_DONE) {
        code = options_select(options, machine->threads_allowed, &r.selection);
    }
    choose_out(&r);
    if (code == EXIT_DONE) {
        code = results_check_writable(r.out);
    }
    if (code == EXIT_DONE) {
        make_rows(&r);
        if (r.result.count == 0) {
            diag_error("no kernel that runs here does any of the selected problems");
            code = EXIT_CANNOT_RUN;
        }
    }
    if (code == EXIT_DONE) {
        const bool quick = quick_only(options);
        struct schedule s = {
            .machine = machine,
            .options = options,
            .problems = r.selection.count,
            .problem = r.selection.problems,
            .rows = r.result.count,
            .row = r.result.rows,
            .row_problem = r.row_problem,
            .default_budget_s = quick ? QUICK_BUDGET_S : 0,
            .default_launches = quick ? QUICK_LAUNCHES : DEFAULT_LAUNCHES,
            .default_samples = DEFAULT_SAMPLES,
            .default_min_time_s = DEFAULT_MIN_TIME_S,
            .journal = is_regular(r.out) ? r.journal : NULL,
        };
        supervisor_catch_signals();
        code = measure(&r, &s);
        if (code == EXIT_DONE) {
            code = report(&r, &s);
        }
        bool any = false;
        for (size_t i = 0; i < r.result.count; i++) {
            code = diag_worst(code, verdict_exit(r.result.rows[i].verdict));
            any = any || r.result.rows[i].verdict != VERDICT_UNSUPPORTED;
        }
        if (!any) {
            code = diag_worst(code, EXIT_CANNOT_RUN);
        }
        schedule_free(&s);
    }
    results_free(&r.result);
    free(r.row_problem);
    selection_free(&r.selection);
    catalogue_free(&r.catalogue);
    if (supervisor_interrupted) {
        signal(supervisor_interrupted, SIG_DFL);
        raise(supervisor_interrupted);
    }
    return code;
}
