/// `mhabench attend`: what heads look at in a text, through the kernels of qkv_proj, qk and
/// softmax.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attend.h"
#include "attend_heads.h"
#include "attend_print.h"
#include "catalogue.h"
#include "commands.h"
#include "diag.h"
#include "protocol.h"
#include "results.h"
#include "stats.h"
#include "supervisor.h"
#include "tokens.h"
#include "word_table.h"

/// One head that is shown, and what is known of it.
struct gaze {
    const struct attend_head *head;
    double *weights;  ///< [tokens][tokens]; NULL before they have come.
};

/// One kernel's worst verdict over all heads.
struct step {
    const struct catalogue_kernel *kernel;
    enum verdict verdict;
    char reason[700];
};

struct attend {
    const struct options *options;
    const struct machine *machine;
    struct string_list tokens;
    bool causal;
    size_t count;
    struct gaze *gazes;  ///< [count]
    struct step steps[ATTEND_STEPS];
    size_t step;  ///< That the worker is busy with.
    char what[200], fault[200];
};

static void add_gaze(struct attend *a, const struct attend_head *head) {
    for (size_t i = 0; i < a->count; i++) {
        if (a->gazes[i].head == head) {
            return;
        }
    }
    a->gazes = diag_alloc(realloc(a->gazes, (a->count + 1) * sizeof(*a->gazes)));
    a->gazes[a->count++] = (struct gaze){head, NULL};
}

static int refuse_text(const struct attend_head *head) {
    char text[200] = "";
    for (size_t i = 0; i < head->words; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s", i > 0 ? " " : "", head->text[i]);
    }
    diag_error("--head '%s': its weights are those of one text, \"%s\"; give that, or another head",
               head->name, text);
    return EXIT_USAGE;
}

/// Takes the heads that the options name, or all that take the text.
static int pick_heads(struct attend *a) {
    const struct string_list *names = &a->options->gazes;
    for (size_t i = 0; i < names->count; i++) {
        const struct attend_head *head = attend_head_find(names->items[i]);
        if (!attend_head_takes(head, &a->tokens)) {
            return refuse_text(head);
        }
        add_gaze(a, head);
    }
    for (size_t i = 0; names->count == 0 && attend_head_get(i) != NULL; i++) {
        if (attend_head_takes(attend_head_get(i), &a->tokens)) {
            add_gaze(a, attend_head_get(i));
        }
    }
    return EXIT_DONE;
}

static int pick_kernels(struct attend *a, const struct catalogue *catalogue) {
    int code = EXIT_DONE;
    for (size_t s = 0; s < ATTEND_STEPS && code == EXIT_DONE; s++) {
        a->steps[s].verdict = VERDICT_UNTESTED;
        code = catalogue_choose(catalogue, a->options, attend_ops[s], &a->steps[s].kernel);
    }
    return code;
}

static void note_step(struct attend *a, size_t step, enum verdict verdict, const char *reason) {
    struct step *s = &a->steps[step];
    if (s->verdict == VERDICT_UNTESTED || s->verdict == VERDICT_PASSED) {
        s->verdict = verdict;
        snprintf(s->reason, sizeof(s->reason), "%s", reason);
    }
}

static void take_weights(struct attend *a, const json_t *rows, struct gaze *gaze) {
    const size_t n = a->tokens.count;
    gaze->weights = diag_alloc(calloc(n * n, sizeof(*gaze->weights)));
    for (size_t i = 0; i < n * n; i++) {
        const json_t *value = json_array_get(json_array_get(rows, i / n), i % n);
        gaze->weights[i] = json_is_number(value) ? json_number_value(value) : UNKNOWN;
    }
}

static void on_event(void *context, const json_t *event) {
    struct attend *a = context;
    const char *what = protocol_get_string(event, "event");
    const size_t head = (size_t)protocol_get_integer(event, "head");
    const size_t step = (size_t)protocol_get_integer(event, "step");
    if (head >= a->count || step >= ATTEND_STEPS) {
        return;
    }
    if (strcmp(what, "start") == 0) {
        a->step = step;
        a->fault[0] = '\0';
        snprintf(a->what, sizeof(a->what), "%s", protocol_get_string(event, "what"));
    } else if (strcmp(what, "fault") == 0) {
        snprintf(a->fault, sizeof(a->fault), ": %s", protocol_get_string(event, "text"));
    } else if (strcmp(what, "step") == 0) {
        char reason[700];
        snprintf(reason, sizeof(reason), "%s: %s", a->what, protocol_get_string(event, "reason"));
        note_step(a, step, verdict_find(protocol_get_string(event, "verdict")), reason);
    } else if (strcmp(what, "weights") == 0 && a->gazes[head].weights == NULL) {
        take_weights(a, json_object_get(event, "weights"), &a->gazes[head]);
    }
}

static json_t *words_of(const struct string_list *list) {
    json_t *words = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(words, json_string(list->items[i]));
    }
    return words;
}

static int run_worker(struct attend *a) {
    json_t *heads = json_array(), *kernels = json_array();
    for (size_t i = 0; i < a->count; i++) {
        json_array_append_new(heads, json_string(a->gazes[i].head->name));
    }
    for (size_t s = 0; s < ATTEND_STEPS; s++) {
        json_array_append_new(kernels, json_string(a->steps[s].kernel->name));
    }
    json_t *job = json_pack("{s:s, s:o, s:I, s:I, s:o, s:b, s:o, s:o}", "mode", "attend", "plugins",
                            words_of(&a->options->plugins), "seed", (json_int_t)a->options->seed,
                            "threads_allowed", (json_int_t)1, "tokens", words_of(&a->tokens),
                            "causal", a->causal, "heads", heads, "kernels", kernels);
    const struct supervisor supervisor = {a->machine, a->options->timeout_s, false, on_event, a};
    char text[256], reason[700];
    const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
    json_decref(job);
    if (end == WORKER_CRASHED || end == WORKER_TIMEOUT) {
        if (a->what[0] == '\0') {
            diag_error("the worker failed outside any kernel: %s", text);
            return EXIT_USAGE;
        }
        snprintf(reason, sizeof(reason), "%s: %s%s", a->what, text, a->fault);
        note_step(a, a->step, end == WORKER_TIMEOUT ? VERDICT_TIMEOUT : VERDICT_CRASHED, reason);
    }
    return end == WORKER_REFUSED ? EXIT_USAGE : EXIT_DONE;
}

static size_t terminal_width(void) {
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void print_text(const struct attend *a) {
    const bool color = commands_color(a->options, STDOUT_FILENO);
    for (size_t i = 0; i < a->count; i++) {
        const struct gaze *g = &a->gazes[i];
        if (g->weights != NULL) {
            printf("%s%s%s%s: %s\n", i > 0 ? "\n" : "", color ? "\033[1m" : "", g->head->name,
                   color ? "\033[0m" : "", g->head->summary);
            attend_print(stdout, &a->tokens, g->weights, a->causal, terminal_width(), color);
        }
    }
    printf("\nper cent of each query's (row's) attention, mask %s, by %s, %s, %s\n",
           a->causal ? "causal" : "none", a->steps[0].kernel->name, a->steps[1].kernel->name,
           a->steps[2].kernel->name);
}

static void print_json(const struct attend *a) {
    const size_t n = a->tokens.count;
    json_t *heads = json_array(), *kernels = json_object();
    for (size_t i = 0; i < a->count; i++) {
        const struct gaze *g = &a->gazes[i];
        json_t *rows = g->weights != NULL ? json_array() : json_null();
        for (size_t r = 0; g->weights != NULL && r < n; r++) {
            json_t *row = json_array();
            for (size_t c = 0; c < n; c++) {
                json_array_append_new(row, protocol_real(g->weights[r * n + c]));
            }
            json_array_append_new(rows, row);
        }
        json_array_append_new(heads, json_pack("{s:s, s:s, s:o}", "name", g->head->name, "summary",
                                               g->head->summary, "weights", rows));
    }
    for (size_t s = 0; s < ATTEND_STEPS; s++) {
        const struct step *step = &a->steps[s];
        const bool said = verdict_exit(step->verdict) != EXIT_DONE;
        json_object_set_new(
            kernels, attend_ops[s],
            json_pack("{s:s, s:s, s:s?}", "name", step->kernel->name, "verdict",
                      verdict_text(step->verdict), "reason", said ? step->reason : NULL));
    }
    json_t *all = json_pack("{s:o, s:s, s:o, s:o}", "tokens", words_of(&a->tokens), "mask",
                            a->causal ? "causal" : "none", "kernels", kernels, "heads", heads);
    json_dumpf(all, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(all);
}

/// Names the words that the semantic head knows nothing of.
static void note_unknown(const struct attend *a) {
    bool shown = false;
    char text[600] = "";
    for (size_t i = 0; i < a->count; i++) {
        shown = shown || strcmp(a->gazes[i].head->name, "semantic") == 0;
    }
    for (size_t i = 0; shown && i < a->tokens.count; i++) {
        float vector[WORD_VECTOR_LENGTH];
        const char *word = a->tokens.items[i];
        bool before = false;
        for (size_t k = 0; k < i; k++) {
            before = before || strcmp(a->tokens.items[k], word) == 0;
        }
        if (!before && !word_vector(word, vector)) {
            const size_t used = strlen(text), room = sizeof(text) - used;
            if (strlen(word) + 8 > room) {
                snprintf(text + used, room, ", ...");
                break;
            }
            snprintf(text + used, room, "%s%s", used > 0 ? ", " : "", word);
        }
    }
    if (text[0] != '\0') {
        diag_note("semantic: not in the table of words, so near to no other: %s", text);
    }
}

static int report(const struct attend *a) {
    int code = EXIT_DONE;
    if (a->options->json) {
        print_json(a);
    } else {
        print_text(a);
        note_unknown(a);
    }
    if (fflush(stdout) != 0) {
        diag_error("stdout cannot be written");
        code = EXIT_USAGE;
    }
    for (size_t s = 0; s < ATTEND_STEPS; s++) {
        // A step that was not reached has another's failure for its reason.
        const int own = verdict_exit(a->steps[s].verdict);
        if (own != EXIT_DONE && a->steps[s].verdict != VERDICT_UNTESTED) {
            diag_error("%s %s", verdict_text(a->steps[s].verdict), a->steps[s].reason);
        }
        code = diag_worst(code, own);
    }
    return code;
}

int cmd_attend(const struct options *options, const struct machine *machine) {
    struct catalogue catalogue = {0};
    struct attend a = {
        .options = options,
        .machine = machine,
        .causal = options->gaze_mask != NULL && strcmp(options->gaze_mask, "causal") == 0};
    char why[WHY_BYTES];
    int code = EXIT_DONE;
    if (!tokens_split(&a.tokens, options->operands.items[0], why)) {
        diag_error("the text cannot be shown: %s", why);
        code = EXIT_USAGE;
    }
    if (code == EXIT_DONE) {
        code = pick_heads(&a);
    }
    if (code == EXIT_DONE) {
        code = catalogue_load(&catalogue, options, machine);
    }
    if (code == EXIT_DONE) {
        code = pick_kernels(&a, &catalogue);
    }
    if (code == EXIT_DONE) {
        code = run_worker(&a);
    }
    if (code == EXIT_DONE) {
        code = report(&a);
    }
    for (size_t i = 0; i < a.count; i++) {
        free(a.gazes[i].weights);
    }
    free(a.gazes);
    string_list_free(&a.tokens);
    catalogue_free(&catalogue);
    return code;
}
