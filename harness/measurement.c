#include "measurement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "diag.h"
#include "op.h"
#include "run_context.h"
#include "schedule.h"
#include "stats.h"
#include "supervisor.h"
#include "tensors.h"

#define DEFAULT_MIN_TIME_S 0.01

/// Launches of a row whose share lies above its ceiling before that is called an error of ours, of
/// nothing but such rows and their ceilings: neighbours can slow down the few samples that a
/// ceiling has beside one problem, and what they do lasts some seconds.
enum { RECHECKS = 3 };

static void choose_out(struct measurement *m) {
    if (m->options->out) {
        snprintf(m->out, sizeof(m->out), "%s", m->options->out);
    } else {
        const time_t now = time(NULL);
        struct tm local;
        localtime_r(&now, &local);
        strftime(m->out, sizeof(m->out), "mhabench-%Y%m%d-%H%M%S.json", &local);
    }
    snprintf(m->journal, sizeof(m->journal), "%s.journal", m->out);
}

int measurement_begin(struct measurement *m, const struct options *options,
                      const struct machine *machine) {
    memset(m, 0, sizeof(*m));
    m->options = options;
    m->machine = machine;
    m->min_time_s = DEFAULT_MIN_TIME_S;
    m->started = (json_int_t)time(NULL);
    int code = run_context_check(options);
    if (code == EXIT_DONE) {
        code = catalogue_load(&m->catalogue, options, machine);
    }
    choose_out(m);
    if (code == EXIT_DONE) {
        code = results_check_writable(m->out);
    }
    return code;
}

void measurement_add(struct measurement *m, size_t problem, const struct catalogue_kernel *k,
                     int threads) {
    struct row row = {
        .problem = m->problem[problem],
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
    char axes[1600], code[1000], line[4000];
    tensors_problem_options(axes, sizeof(axes), m->options, &row.problem);
    catalogue_repro(code, sizeof(code), m->options, row.problem.op, k->plugin);
    snprintf(line, sizeof(line), "./mhabench run --kernel %s %s --threads %d --seed %llu%s",
             k->name, axes, threads, (unsigned long long)m->options->seed, code);
    row.repro = diag_alloc(strdup(line));
    struct result *result = &m->result;
    result->rows = diag_alloc(realloc(result->rows, (result->count + 1) * sizeof(*result->rows)));
    m->row_problem =
        diag_alloc(realloc(m->row_problem, (result->count + 1) * sizeof(*m->row_problem)));
    m->row_problem[result->count] = problem;
    result->rows[result->count++] = row;
}

/// A pipe or a device gets no journal beside it.
static bool is_regular(const char *path) {
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/// Says why a row has no time.
static void finish_rows(struct measurement *m) {
    for (size_t i = 0; i < m->result.count; i++) {
        struct row *row = &m->result.rows[i];
        const bool untimed = row->verdict == VERDICT_PASSED && row->launches == 0;
        if (row->verdict == VERDICT_UNTESTED || (untimed && !catalogue_emulated(m->machine))) {
            row->verdict = VERDICT_SKIPPED;
            free(row->reason);
            row->reason =
                diag_alloc(strdup(m->interrupted ? "interrupted before its first sample"
                                                 : "the budget ended before its first sample"));
        } else if (untimed) {
            free(row->reason);
            row->reason = diag_alloc(strdup("emulated: checked, never timed"));
        }
    }
}

static int measure(struct measurement *m, struct schedule *s) {
    int code = schedule_run(s);
    if (code != EXIT_DONE) {
        return code;
    }
    results_derive(&m->result);
    for (int i = 0; i < RECHECKS && code == EXIT_DONE && !s->interrupted &&
                    !catalogue_emulated(m->machine) && schedule_shares(s, false) > 0;
         i++) {
        if (i == 0) {
            diag_note("a share lies above its ceiling: such rows are measured again");
        }
        code = schedule_again(s);
        results_derive(&m->result);
    }
    schedule_shares(s, true);
    m->interrupted = s->interrupted;
    finish_rows(m);
    results_derive(&m->result);
    return code;
}

int measurement_take(struct measurement *m) {
    struct schedule s = {
        .machine = m->machine,
        .options = m->options,
        .problems = m->problems,
        .problem = m->problem,
        .rows = m->result.count,
        .row = m->result.rows,
        .row_problem = m->row_problem,
        .default_budget_s = m->default_budget_s,
        .default_launches = m->default_launches,
        .default_samples = m->default_samples,
        .default_min_time_s = m->min_time_s,
        .journal = is_regular(m->out) ? m->journal : NULL,
    };
    supervisor_catch_signals();
    const int code = measure(m, &s);
    m->min_time_s = schedule_min_time_s(&s);
    schedule_ceilings(&s, &m->ceilings);
    schedule_free(&s);
    return code;
}

int measurement_report(struct measurement *m, void (*print)(void *context, const json_t *file),
                       void *context) {
    m->result.context = run_context(m->options, m->machine, &m->catalogue, &m->ceilings,
                                    m->min_time_s, m->started, m->interrupted);
    json_t *json = results_to_json(&m->result);
    int code = results_write(json, m->out);
    print(context, json);
    json_decref(json);
    if (fflush(stdout) != 0) {
        diag_error("stdout cannot be written");
        code = EXIT_USAGE;
    }
    if (code == EXIT_DONE) {
        fprintf(stderr, "written to %s\n", m->out);
        if (m->interrupted) {
            diag_note("interrupted: the same command with --resume --out %s goes on", m->out);
        } else {
            remove(m->journal);
        }
    }
    return code;
}

int measurement_exit(const struct measurement *m) {
    int code = EXIT_DONE;
    bool any = false;
    for (size_t i = 0; i < m->result.count; i++) {
        code = diag_worst(code, verdict_exit(m->result.rows[i].verdict));
        any = any || m->result.rows[i].verdict != VERDICT_UNSUPPORTED;
    }
    return any ? code : diag_worst(code, EXIT_CANNOT_RUN);
}

void measurement_end(struct measurement *m) {
    ceilings_free(&m->ceilings);
    results_free(&m->result);
    free(m->row_problem);
    catalogue_free(&m->catalogue);
    supervisor_obey_interrupt();
}
