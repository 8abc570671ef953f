/// `mhabench machine`: what this machine is, and what it can do: FMA peaks and bandwidths,
/// measured.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "catalogue.h"
#include "commands.h"
#include "cpu.h"
#include "diag.h"
#include "op.h"
#include "run_context.h"
#include "schedule.h"
#include "stats.h"
#include "supervisor.h"

enum { LAUNCHES = 3, SAMPLES = 5 };
#define MIN_TIME_S 0.005

/// Everything that is measured: one problem per op, level and thread count.
struct plan {
    const struct catalogue *catalogue;
    size_t problems;
    struct problem *problem;
    const char **level;  ///< [problems]
    size_t rows;
    struct row *row;
    size_t *row_problem;
};

/// Tells whether there is a kernel of the op, dtype and ISA that runs.
static bool has_kernel(const struct plan *p, const char *op, const char *dtype, const char *isa) {
    for (size_t i = 0; i < p->catalogue->count; i++) {
        const struct catalogue_kernel *k = &p->catalogue->kernels[i];
        if (k->runs && strcmp(k->op, op) == 0 && strcmp(k->dtype, dtype) == 0 &&
            strcmp(k->isa, isa) == 0) {
            return true;
        }
    }
    return false;
}

/// Adds one problem and a row for every kernel of the op, dtype and ISA.
static void add(struct plan *p, const char *op, const char *dtype, const char *isa,
                const char *level, double bytes, int threads) {
    if (!has_kernel(p, op, dtype, isa)) {
        return;
    }
    const struct op_driver *driver = op_find(op);
    const double streams = strcmp(op, "copy") == 0 ? 2 : 1;
    size_t planes = (size_t)threads;
    size_t count = (size_t)fmax(16, bytes / (4 * streams * (double)planes));
    // At most 2^22 elements a plane (see ops/read.c), and whole cache lines.
    while (count > (size_t)1 << 22) {
        planes *= 2;
        count /= 2;
    }
    struct problem problem = {.op = driver->name,
                              .dtype = dtype,
                              .shape = {planes, 1, 1, 1, count / 16 * 16, 1},
                              .mask = MHA_MASK_NONE,
                              .cache = CACHE_HOT};
    driver->normalise(&problem);
    p->problem = diag_alloc(realloc(p->problem, (p->problems + 1) * sizeof(*p->problem)));
    p->level = diag_alloc(realloc(p->level, (p->problems + 1) * sizeof(*p->level)));
    p->problem[p->problems] = problem;
    p->level[p->problems] = level;
    for (size_t i = 0; i < p->catalogue->count; i++) {
        const struct catalogue_kernel *k = &p->catalogue->kernels[i];
        if (!k->runs || !catalogue_fits(k, &problem) || strcmp(k->isa, isa) != 0) {
            continue;
        }
        double read, written;
        driver->bytes(&problem, &read, &written);
        p->row = diag_alloc(realloc(p->row, (p->rows + 1) * sizeof(*p->row)));
        p->row_problem =
            diag_alloc(realloc(p->row_problem, (p->rows + 1) * sizeof(*p->row_problem)));
        p->row[p->rows] = (struct row){.problem = problem,
                                       .kernel = diag_alloc(strdup(k->name)),
                                       .isa = diag_alloc(strdup(k->isa)),
                                       .tag = diag_alloc(strdup(k->tag)),
                                       .threads = threads,
                                       .flops = driver->flops(&problem) * k->flops_per_step,
                                       .bytes = read + written};
        p->row_problem[p->rows++] = p->problems;
    }
    p->problems++;
}

static bool asked(const struct options *options, const char *isa) {
    bool found = options->isas.count == 0;
    for (size_t i = 0; i < options->isas.count; i++) {
        found = found || strcmp(options->isas.items[i], isa) == 0;
    }
    return found;
}

/// FMA peaks of every ISA that runs; bandwidths with the widest.
static void make_plan(struct plan *p, const struct options *options, const struct machine *m,
                      const struct size_list *threads) {
    const char *const f32 = element_word(ELEMENT_F32);
    const char *widest = NULL, *why_not;
    // Half of a level: what it holds beside stacks and the harness's own data.
    const struct {
        const char *level;
        double bytes;
        bool per_core;
    } levels[] = {
        {"L1", (double)m->l1_bytes / 2, true},
        {"L2", (double)m->l2_bytes / 2, true},
        {"L3", (double)m->l3_bytes / 2, false},
        {"DRAM", 4 * (double)m->l3_bytes, false},
    };
    for (size_t t = 0; t < threads->count; t++) {
        const int n = (int)threads->items[t];
        for (size_t i = 0; i < mha_isa_count(); i++) {
            const char *isa = mha_isa_status(i, NULL).isa;
            if (catalogue_isa_runs(isa, options->max_isa, &why_not) && asked(options, isa)) {
                for (size_t e = 0; e < ELEMENT_COUNT; e++) {
                    add(p, "peak", element_word(e), isa, "", 0, n);
                }
                // Not every set of features has its own way to move data.
                widest = has_kernel(p, "copy", f32, isa) ? isa : widest;
            }
        }
        static const char *const mixes[] = {"read", "write", "copy"};
        for (size_t l = 0; widest && l < sizeof(levels) / sizeof(levels[0]); l++) {
            for (size_t x = 0; x < 3; x++) {
                add(p, mixes[x], f32, widest, levels[l].level,
                    levels[l].bytes * (levels[l].per_core ? n : 1), n);
            }
        }
    }
}

/// Turns the measured rows into ceilings; of several kernels of a mix the best counts.
static void collect(const struct plan *p, struct ceiling_list *list) {
    *list = (struct ceiling_list){0, diag_alloc(calloc(p->rows + 1, sizeof(*list->items)))};
    for (size_t i = 0; i < p->rows; i++) {
        const struct row *row = &p->row[i];
        const bool fma = strcmp(row->problem.op, "peak") == 0;
        if (row->verdict != VERDICT_PASSED || !isfinite(row->median_ns)) {
            continue;
        }
        const bool streaming = strncmp(row->tag, "nt", 2) == 0;
        const char *mix = fma ? "" : row->problem.op;
        if (streaming) {
            mix = strcmp(mix, "copy") == 0 ? "streaming copy" : "streaming write";
        }
        struct ceiling c = {.kind = fma ? "fma" : "bandwidth",
                            .level = p->level[p->row_problem[i]],
                            .mix = mix,
                            .bytes = fma ? 0 : row->bytes,
                            .threads = row->threads,
                            .value = (fma ? row->flops : row->bytes) / row->median_ns,
                            .spread = row->spread_within,
                            .samples = row->launches};
        snprintf(c.isa, sizeof(c.isa), "%s", row->isa);
        snprintf(c.dtype, sizeof(c.dtype), "%s", row->problem.dtype);
        struct ceiling *same = NULL;
        for (size_t k = 0; k < list->count; k++) {
            struct ceiling *o = &list->items[k];
            if (o->threads == c.threads && strcmp(o->isa, c.isa) == 0 &&
                strcmp(o->mix, c.mix) == 0 && strcmp(o->level, c.level) == 0) {
                same = o;
            }
        }
        if (!same) {
            list->items[list->count++] = c;
        } else if (c.value > same->value) {
            *same = c;
        }
    }
}

static void print_value(const json_t *machine, const char *key, const char *label) {
    const json_t *value = json_object_get(machine, key);
    char *text = NULL;
    if (json_is_string(value)) {
        printf("%-16s %s\n", label, json_string_value(value));
    } else if (value && !json_is_null(value)) {
        text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        printf("%-16s %s\n", label, text ? text : "?");
        free(text);
    } else {
        printf("%-16s not known\n", label);
    }
}

static void print_text(const json_t *machine, const struct ceiling_list *list) {
    const struct {
        const char *key, *label;
    } facts[] = {{"cpu", "CPU"},
                 {"microcode", "microcode"},
                 {"features", "features"},
                 {"cores", "cores"},
                 {"threads_allowed", "threads allowed"},
                 {"quota", "quota"},
                 {"smt", "SMT"},
                 {"governor", "governor"},
                 {"thp", "huge pages"},
                 {"ftz", "FTZ"},
                 {"kernel", "kernel"},
                 {"emulated", "emulated"},
                 {"l1_bytes", "L1 bytes"},
                 {"l2_bytes", "L2 bytes"},
                 {"l3_bytes", "L3 bytes"},
                 {"l3_capped", "L3 capped"}};
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        print_value(machine, facts[i].key, facts[i].label);
    }
    if (list->count > 0) {
        printf(
            "\nceiling                    ISA      level  threads       value            spread\n");
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct ceiling *c = &list->items[i];
        const bool fma = strcmp(c->kind, "fma") == 0;
        printf("%-26s %-8s %-6s %7d  %10.1f %-8s  %5.1f %%\n", fma ? "fma peak" : c->mix, c->isa,
               c->level, c->threads, c->value, fma ? "GFLOP/s" : "GB/s", 100 * c->spread);
    }
}

int cmd_machine(const struct options *options, const struct machine *machine) {
    struct catalogue catalogue;
    struct plan plan = {.catalogue = &catalogue};
    struct size_list threads = {0};
    struct ceiling_list ceilings = {0};
    const json_int_t started = (json_int_t)time(NULL);
    int code = catalogue_load(&catalogue, options, machine);
    if (code == EXIT_DONE) {
        code = options_threads(options, machine->threads_allowed, &threads);
    }
    if (code == EXIT_DONE && !catalogue_emulated(machine)) {
        make_plan(&plan, options, machine, &threads);
        struct schedule s = {
            .machine = machine,
            .options = options,
            .problems = plan.problems,
            .problem = plan.problem,
            .rows = plan.rows,
            .row = plan.row,
            .row_problem = plan.row_problem,
            .default_launches = LAUNCHES,
            .default_samples = SAMPLES,
            .default_min_time_s = MIN_TIME_S,
            .quiet = true,
        };
        supervisor_catch_signals();
        code = schedule_run(&s);
        struct result result = {NULL, plan.rows, plan.row};
        results_derive(&result);
        collect(&plan, &ceilings);
        schedule_free(&s);
    }
    if (code == EXIT_DONE && options->json) {
        json_t *context = run_context(options, machine, &catalogue, &ceilings, MIN_TIME_S, started,
                                      supervisor_interrupted != 0);
        json_dumpf(context, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(context);
    } else if (code == EXIT_DONE) {
        json_t *facts = machine_to_json(machine);
        print_text(facts, &ceilings);
        json_decref(facts);
    }
    for (size_t i = 0; i < plan.rows; i++) {
        code = diag_worst(code, verdict_exit(plan.row[i].verdict));
        row_free(&plan.row[i]);
    }
    free(plan.problem);
    free(plan.level);
    free(plan.row);
    free(plan.row_problem);
    free(threads.items);
    ceilings_free(&ceilings);
    catalogue_free(&catalogue);
    supervisor_obey_interrupt();
    return code;
}
