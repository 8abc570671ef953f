/// `mhabench study`: what the literature claims of multi-head attention, measured on this machine.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "commands.h"
#include "diag.h"
#include "measurement.h"
#include "protocol.h"
#include "stats.h"
#include "study.h"

/// With what comes before and behind it, a study of this length ends within five minutes.
#define DEFAULT_BUDGET_S 240.0

/// Launches are what intervals are made of; samples within one matter less.
enum { DEFAULT_LAUNCHES = 5, DEFAULT_SAMPLES = 3 };

/// The widest that a line's text gets before its numbers.
enum { WHAT_COLUMNS = 62, TEXT_COLUMNS = 86 };

static const char *const kernel_ops[STUDY_KERNELS] = {
    [STUDY_QK] = "qk",       [STUDY_SOFTMAX] = "softmax",   [STUDY_PV] = "pv",
    [STUDY_SDPA] = "sdpa",   [STUDY_QKV_PROJ] = "qkv_proj", [STUDY_OUT_PROJ] = "out_proj",
    [STUDY_UNFUSED] = "mha", [STUDY_FUSED] = "mha",
};

/// Chooses one kernel an op. The layer over sdpa is that of the unfused layer's ISA.
static int choose(struct study *s) {
    const struct catalogue *catalogue = &s->m->catalogue;
    int code = EXIT_DONE;
    for (size_t k = 0; k < STUDY_FUSED && code == EXIT_DONE; k++) {
        code = catalogue_choose(catalogue, s->m->options, kernel_ops[k], &s->kernels[k]);
    }
    for (size_t i = 0; i < catalogue->count && code == EXIT_DONE; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        if (strcmp(k->op, kernel_ops[STUDY_FUSED]) == 0 && strcmp(k->tag, "fused") == 0 &&
            strcmp(k->isa, s->kernels[STUDY_UNFUSED]->isa) == 0) {
            s->kernels[STUDY_FUSED] = k;
        }
    }
    return code;
}

static int choose_threads(struct study *s) {
    struct size_list threads = {0};
    const int code = options_threads(s->m->options, s->m->machine->threads_allowed, &threads);
    s->many = 1;
    for (size_t i = 0; i < threads.count; i++) {
        s->many = (int)threads.items[i] > s->many ? (int)threads.items[i] : s->many;
    }
    size_list_free(&threads);
    return code;
}

/// Prints a text behind a label, broken at spaces.
static void print_text(const char *label, const char *text) {
    printf("  %-11s", label);
    while (strlen(text) > TEXT_COLUMNS) {
        size_t end = TEXT_COLUMNS;
        while (end > 0 && text[end] != ' ') {
            end--;
        }
        if (end == 0) {
            break;
        }
        printf("%.*s\n%13s", (int)end, text, "");
        text += end + 1;
    }
    printf("%s\n", text);
}

static void print_measure(const struct study_measure *m) {
    printf("    %-*s", WHAT_COLUMNS, m->what);
    if (!isfinite(m->value)) {
        printf("  not measured\n");
        return;
    }
    printf("%10.4g%s%s", m->value, m->unit[0] ? " " : "", m->unit);
    if (isfinite(m->low) && isfinite(m->high)) {
        printf("  (%.4g to %.4g)", m->low, m->high);
    }
    printf("\n");
}

static void print_claims(const struct study *s, bool color) {
    static const char *const colors[] = {
        [STUDY_HOLDS] = "\033[32m", [STUDY_FAILS] = "\033[31m", [STUDY_INCONCLUSIVE] = "\033[33m"};
    for (size_t i = 0; i < s->count; i++) {
        const struct study_claim *c = &s->claims[i];
        printf("%s%s %s%s\n", color ? "\033[1m" : "", c->id, c->claim, color ? "\033[0m" : "");
        for (size_t k = 0; k < c->count; k++) {
            print_measure(&c->measures[k]);
        }
        print_text("criterion", c->criterion);
        printf("  %-11s%s%s%s\n", "verdict", color ? colors[c->verdict] : "",
               study_verdict_text(c->verdict), color ? "\033[0m" : "");
        print_text("", c->why);
        printf("\n");
    }
    printf(
        "In brackets: where the value lies, by the spread between launches; of a claim's "
        "intervals\n"
        "all hold at once with a probability of 0.95. HOLDS: those that the criterion asks for "
        "lie\n"
        "within it; DOES NOT HOLD: one lies wholly outside.\nKernels:");
    for (size_t k = 0; k < STUDY_KERNELS; k++) {
        printf("%s%s", k % 3 == 0 ? "\n  " : "  ",
               s->kernels[k] ? s->kernels[k]->name : "no layer over sdpa");
    }
    printf("\n");
}

static void print_json(const struct study *s) {
    json_t *claims = json_array(), *kernels = json_array();
    for (size_t i = 0; i < s->count; i++) {
        const struct study_claim *c = &s->claims[i];
        json_t *measures = json_array();
        for (size_t k = 0; k < c->count; k++) {
            const struct study_measure *m = &c->measures[k];
            json_t *least = protocol_real(m->judged ? m->least : UNKNOWN);
            json_t *most = protocol_real(m->judged ? m->most : UNKNOWN);
            json_array_append_new(
                measures, json_pack("{s:s, s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "what", m->what,
                                    "unit", m->unit, "value", protocol_real(m->value), "low",
                                    protocol_real(m->low), "high", protocol_real(m->high), "judged",
                                    m->judged, "least", least, "most", most));
        }
        json_array_append_new(
            claims, json_pack("{s:s, s:s, s:o, s:s, s:s, s:s}", "id", c->id, "claim", c->claim,
                              "measures", measures, "criterion", c->criterion, "verdict",
                              study_verdict_text(c->verdict), "why", c->why));
    }
    for (size_t k = 0; k < STUDY_KERNELS; k++) {
        if (s->kernels[k]) {
            json_array_append_new(kernels, json_string(s->kernels[k]->name));
        }
    }
    json_t *all =
        json_pack("{s:o, s:o, s:s}", "claims", claims, "kernels", kernels, "result", s->m->out);
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
}

static void print(void *context, const json_t *file) {
    struct study *s = context;
    (void)file;
    study_read(s);
    if (s->m->options->json) {
        print_json(s);
    } else {
        print_claims(s, commands_color(s->m->options, STDOUT_FILENO));
    }
}

int cmd_study(const struct options *options, const struct machine *machine) {
    struct measurement m;
    struct study s = {.m = &m};
    int code = measurement_begin(&m, options, machine);
    if (code == EXIT_DONE) {
        code = catalogue_require(&m.catalogue, options);
    }
    if (code == EXIT_DONE) {
        code = choose(&s);
    }
    if (code == EXIT_DONE) {
        code = choose_threads(&s);
    }
    if (code == EXIT_DONE) {
        m.default_budget_s = DEFAULT_BUDGET_S;
        m.default_launches = DEFAULT_LAUNCHES;
        m.default_samples = DEFAULT_SAMPLES;
        study_plan(&s);
        code = measurement_take(&m);
        if (code == EXIT_DONE) {
            code = measurement_report(&m, print, &s);
        }
        code = diag_worst(code, measurement_exit(&m));
    }
    study_free(&s);
    measurement_end(&m);
    return code;
}
