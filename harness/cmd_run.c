/// `mhabench run`: how fast, beside its peers and the machine's ceilings; and right, or there is no
/// number.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "commands.h"
#include "diag.h"
#include "measurement.h"
#include "results.h"
#include "tensors.h"

/// `quick`, the default, is meant to end within a minute on two cores.
#define QUICK_BUDGET_S 42.0

/// Length of its samples where longer ones would leave no time for a second launch.
#define QUICK_MIN_TIME_S 0.002

enum { DEFAULT_LAUNCHES = 5, QUICK_LAUNCHES = 3, DEFAULT_SAMPLES = 5 };

/// What a row takes of a launch, in samples: two to calibrate, and each of its own with as much
/// again for the call before it and the canary. Seen where 586 rows had 21 s.
enum { SAMPLES_OF_ROW = 2 + 2 * DEFAULT_SAMPLES };

static void make_rows(struct measurement *m, const struct selection *selection) {
    for (size_t p = 0; p < selection->count; p++) {
        for (size_t i = 0; i < m->catalogue.count; i++) {
            const struct catalogue_kernel *k = &m->catalogue.kernels[i];
            for (size_t t = 0; t < selection->threads.count; t++) {
                if (k->runs && catalogue_selects(m->options, k) &&
                    catalogue_fits(k, &selection->problems[p])) {
                    measurement_add(m, p, k, (int)selection->threads.items[t]);
                }
            }
        }
    }
}

static bool quick_only(const struct options *o) {
    return o->presets.count == 0 ||
           (o->presets.count == 1 && strcmp(o->presets.items[0], "quick") == 0);
}

static void print(void *context, const json_t *file) {
    const struct measurement *m = context;
    if (m->options->json) {
        json_dumpf(file, stdout, JSON_INDENT(1));
        putchar('\n');
    } else {
        results_table(&m->result, stdout, commands_color(m->options, STDOUT_FILENO));
    }
}

static int run(const struct options *options, const struct machine *machine) {
    struct measurement m;
    struct selection selection = {0};
    int code = measurement_begin(&m, options, machine);
    if (code == EXIT_DONE) {
        code = catalogue_require(&m.catalogue, options);
    }
    if (code == EXIT_DONE) {
        code = options_select(options, machine->threads_allowed, &selection);
    }
    if (code == EXIT_DONE) {
        const bool quick = quick_only(options);
        m.problems = selection.count;
        m.problem = selection.problems;
        m.default_budget_s = quick ? QUICK_BUDGET_S : 0;
        m.default_launches = quick ? QUICK_LAUNCHES : DEFAULT_LAUNCHES;
        m.default_samples = DEFAULT_SAMPLES;
        make_rows(&m, &selection);
        const double budget_s = options->budget_s > 0 ? options->budget_s : m.default_budget_s;
        const double samples = (double)(m.result.count * SAMPLES_OF_ROW * QUICK_LAUNCHES);
        if (quick && samples * m.min_time_s > budget_s) {
            m.min_time_s = QUICK_MIN_TIME_S;
        }
        if (m.result.count == 0) {
            diag_error("no kernel that runs here does any of the selected problems");
            code = EXIT_CANNOT_RUN;
        }
    }
    if (code == EXIT_DONE) {
        code = measurement_take(&m);
        if (code == EXIT_DONE) {
            code = measurement_report(&m, print, &m);
        }
        code = diag_worst(code, measurement_exit(&m));
    }
    selection_free(&selection);
    measurement_end(&m);
    return code;
}

int cmd_run(const struct options *options, const struct machine *machine) {
    struct tensor_options prepared;
    int code = tensors_options(options, &prepared);
    if (code == EXIT_DONE) {
        code = run(&prepared.own, machine);
    }
    tensors_options_free(&prepared);
    return code;
}
