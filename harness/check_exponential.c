#include "check_exponential.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "exponential.h"
#include "protocol.h"
#include "supervisor.h"

struct walking {
    struct exponential_list *list;
    bool progress;
    struct exponential *current;
    char current_what[120];
};

static struct exponential *find(const struct exponential_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].kernel->name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

static void settle(struct exponential *e, enum verdict verdict, const char *reason) {
    e->verdict = verdict;
    e->reason = reason[0] ? diag_alloc(strdup(reason)) : NULL;
}

static void on_event(void *context, const json_t *event) {
    struct walking *w = context;
    const char *what = protocol_get_string(event, "event");
    struct exponential *e = find(w->list, protocol_get_string(event, "kernel"));
    if (strcmp(what, "start") == 0) {
        w->current = e;
        snprintf(w->current_what, sizeof(w->current_what), "%s",
                 protocol_get_string(event, "what"));
    } else if (strcmp(what, "share") == 0 && w->progress) {
        fprintf(stderr, "\r\033[Kwalked %.1f %% of the exponentials",
                100 * protocol_get_real(event, "share"));
    } else if (strcmp(what, "exponential") == 0 && e) {
        e->max_ulp = protocol_get_real(event, "max_ulp");
        e->at = protocol_get_real(event, "at");
        e->floats = (size_t)protocol_get_integer(event, "floats");
        settle(e, verdict_find(protocol_get_string(event, "verdict")),
               protocol_get_string(event, "reason"));
    }
}

static json_t *make_job(const struct exponential_list *list, const struct options *options,
                        int threads) {
    json_t *kernels = json_array(), *plugins = json_array();
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].verdict == VERDICT_UNTESTED) {
            json_array_append_new(kernels, json_string(list->items[i].kernel->name));
        }
    }
    for (size_t i = 0; i < options->plugins.count; i++) {
        json_array_append_new(plugins, json_string(options->plugins.items[i]));
    }
    return json_pack("{s:s, s:o, s:I, s:I, s:{s:o, s:b}}", "mode", "exponential", "plugins",
                     plugins, "seed", (json_int_t)options->seed, "threads_allowed",
                     (json_int_t)threads, "exponentials", "kernels", kernels, "exhaustive",
                     options->exhaustive);
}

static size_t open_items(const struct exponential_list *list) {
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        count += list->items[i].verdict == VERDICT_UNTESTED;
    }
    return count;
}

int exponential_check(struct exponential_list *list, const struct options *options,
                      const struct machine *machine, const struct catalogue *catalogue, int threads,
                      bool progress) {
    list->items = diag_alloc(calloc(catalogue->count + 1, sizeof(*list->items)));
    for (size_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        if (k->exponential && k->runs && catalogue_selects(options, k)) {
            list->items[list->count++] =
                (struct exponential){.kernel = k, .max_ulp = (double)NAN, .at = (double)NAN};
        }
    }
    if (list->count == 0 && options->exhaustive) {
        diag_error("--exhaustive: no kernel of the selection gives its exponential (exp_f32)");
        return EXIT_USAGE;
    }
    struct walking w = {.list = list, .progress = progress};
    const struct supervisor supervisor = {machine, options->timeout_s, false, on_event, &w};
    int silent = 0;
    // A kernel that ends the worker is out; the others start again.
    while (open_items(list) > 0) {
        char text[256], reason[400];
        w.current = NULL;
        json_t *job = make_job(list, options, threads);
        const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
        json_decref(job);
        if (end == WORKER_DONE || end == WORKER_INTERRUPTED) {
            return EXIT_DONE;
        }
        if (end == WORKER_REFUSED) {
            return EXIT_USAGE;
        }
        if (w.current) {
            silent = 0;
            snprintf(reason, sizeof(reason), "%s: %s", w.current_what, text);
            settle(w.current, end == WORKER_TIMEOUT ? VERDICT_TIMEOUT : VERDICT_CRASHED, reason);
        } else if (++silent >= 3) {
            diag_error("the worker failed three times outside any kernel: %s", text);
            return EXIT_USAGE;
        }
    }
    return EXIT_DONE;
}

/// Writes the command that repeats the check of one exponential, and little else.
static void repro_line(char *line, size_t size, const struct exponential *e,
                       const struct options *options) {
    snprintf(line, size,
             "./mhabench check --kernel %s --batch 1 --heads 1 --seq 1 --seed %llu%s%s%s",
             e->kernel->name, (unsigned long long)options->seed,
             options->exhaustive ? " --exhaustive" : "", e->kernel->plugin ? " --plugin " : "",
             e->kernel->plugin ? e->kernel->plugin : "");
}

int exponential_report(const struct exponential_list *list, const struct options *options,
                       FILE *out) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < list->count; i++) {
        const struct exponential *e = &list->items[i];
        fprintf(out, "%-11s %-36s exp of %zu floats", verdict_text(e->verdict), e->kernel->name,
                e->floats);
        if (isfinite(e->max_ulp)) {
            fprintf(out, "  max %.4f ulp, at %a = %.9g", e->max_ulp, e->at, e->at);
        }
        fputc('\n', out);
        if (e->reason) {
            fprintf(out, "    %s\n", e->reason);
        }
        if (verdict_exit(e->verdict) != EXIT_DONE) {
            char line[800];
            repro_line(line, sizeof(line), e, options);
            fprintf(out, "    repeat: %s\n", line);
        }
        code = diag_worst(code, verdict_exit(e->verdict));
    }
    return code;
}

json_t *exponential_to_json(const struct exponential_list *list, const struct options *options) {
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct exponential *e = &list->items[i];
        char line[800];
        repro_line(line, sizeof(line), e, options);
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:b, s:I, s:o, s:f, s:o, s:s?, s:s}", "kernel",
                           e->kernel->name, "verdict", verdict_text(e->verdict), "exhaustive",
                           options->exhaustive, "floats", (json_int_t)e->floats, "max_ulp",
                           protocol_real(e->max_ulp), "bound_ulp", EXPONENTIAL_ULP_MAX, "at",
                           protocol_real(e->at), "reason", e->reason, "repro", line));
    }
    return all;
}

void exponential_free(struct exponential_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].reason);
    }
    free(list->items);
}
