#include "catalogue.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"
#include "diag.h"
#include "op.h"
#include "protocol.h"
#include "supervisor.h"

/// An ISA that counts as present: tests run AVX-512 sources over an emulation in plain C
/// (tests/simde).
static const char *assumed_isa(void) {
    return getenv("MHABENCH_ASSUME_ISA");
}

bool catalogue_emulated(const struct machine *machine) {
    return machine->emulated || assumed_isa() != NULL;
}

bool catalogue_isa_holds(const char *isa, const char *other) {
    return strncmp(isa, other, strlen(other)) == 0;
}

bool catalogue_isa_runs(const char *isa, const char *max_isa, const char **why_not) {
    const int index = mha_isa_find(isa);
    *why_not = "";
    if (index < 0) {
        *why_not = "an ISA that this program does not know";
        return false;
    }
    if (max_isa && !mha_isa_within(index, mha_isa_find(max_isa))) {
        *why_not = "above --max-isa";
        return false;
    }
    if (assumed_isa() && strcmp(assumed_isa(), isa) == 0) {
        return true;
    }
    const struct mha_isa_status status = mha_isa_status((size_t)index, NULL);
    *why_not = status.why_not;
    return status.runs;
}

struct loading {
    struct catalogue *catalogue;
    const char *max_isa;
};

static char *copy(const json_t *event, const char *key) {
    return diag_alloc(strdup(protocol_get_string(event, key)));
}

void catalogue_add(struct catalogue *c, const json_t *event, const char *max_isa) {
    c->kernels = diag_alloc(realloc(c->kernels, (c->count + 1) * sizeof(*c->kernels)));
    struct catalogue_kernel *k = &c->kernels[c->count++];
    const bool plugin = json_is_string(json_object_get(event, "plugin"));
    *k = (struct catalogue_kernel){
        .name = copy(event, "name"),
        .op = copy(event, "op"),
        .dtype = copy(event, "dtype"),
        .isa = copy(event, "isa"),
        .tag = copy(event, "tag"),
        .summary = copy(event, "summary"),
        .plugin = plugin ? copy(event, "plugin") : NULL,
        .code_hash = copy(event, "code_hash"),
        .library = copy(event, "library"),
        .version = copy(event, "version"),
        .peer = json_is_true(json_object_get(event, "peer")),
        .exponential = json_is_true(json_object_get(event, "exponential")),
        .step = (size_t)protocol_get_integer(event, "step"),
        .flops_per_step = (double)protocol_get_integer(event, "flops_per_step"),
    };
    k->runs = catalogue_isa_runs(k->isa, max_isa, &k->why_not);
}

static void on_kernel(void *context, const json_t *event) {
    const struct loading *loading = context;
    catalogue_add(loading->catalogue, event, loading->max_isa);
}

json_t *catalogue_with(const struct options *options) {
    json_t *pairs = json_array();
    for (size_t i = 0; i < options->with.count; i++) {
        json_t *pair = json_string(options->with.items[i]);
        // What is no UTF-8 names no kernel either.
        json_array_append_new(pairs, pair ? pair : json_string("?"));
    }
    return pairs;
}

void catalogue_repro(char *text, size_t size, const struct options *options, const char *op,
                     const char *plugin) {
    const bool composed = op_find(op)->pipelines && options->with.count > 0;
    text[0] = '\0';
    if (!composed && plugin) {
        snprintf(text, size, " --plugin %s", plugin);
    }
    for (size_t i = 0; composed && i < options->plugins.count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, " --plugin %s", options->plugins.items[i]);
    }
    for (size_t i = 0; composed && i < options->with.count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i == 0 ? " --with " : ",",
                 options->with.items[i]);
    }
}

int catalogue_load(struct catalogue *catalogue, const struct options *options,
                   const struct machine *machine) {
    memset(catalogue, 0, sizeof(*catalogue));
    struct loading loading = {catalogue, options->max_isa};
    const struct supervisor supervisor = {machine, options->timeout_s, false, on_kernel, &loading};
    json_t *plugins = json_array();
    for (size_t i = 0; i < options->plugins.count; i++) {
        json_t *path = json_string(options->plugins.items[i]);
        if (!path) {
            diag_error("--plugin: the name of the file must be UTF-8");
            json_decref(plugins);
            return EXIT_USAGE;
        }
        json_array_append_new(plugins, path);
    }
    json_t *job = json_pack("{s:s, s:o}", "mode", "catalogue", "plugins", plugins);
    if (options->command == COMMAND_CHECK || options->command == COMMAND_RUN ||
        options->command == COMMAND_STUDY) {
        json_object_set_new(job, "with", catalogue_with(options));
    }
    char text[256];
    const enum worker_end end = supervisor_run(&supervisor, job, text, sizeof(text));
    json_decref(job);
    if (end == WORKER_CRASHED || end == WORKER_TIMEOUT) {
        diag_error("the kernels cannot be loaded: %s", text);
    }
    return end == WORKER_DONE ? EXIT_DONE : EXIT_USAGE;
}

static bool in_list(const struct string_list *list, const char *word) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], word) == 0) {
            return true;
        }
    }
    return list->count == 0;
}

bool catalogue_selects(const struct options *options, const struct catalogue_kernel *kernel) {
    bool named = options->kernels.count == 0;
    for (size_t i = 0; i < options->kernels.count; i++) {
        named = named || fnmatch(options->kernels.items[i], kernel->name, 0) == 0;
    }
    const bool ceiling = op_find(kernel->op)->ceiling;
    const bool asked = !ceiling || options->ops.count > 0 || options->kernels.count > 0;
    return named && asked && in_list(&options->ops, kernel->op) &&
           in_list(&options->isas, kernel->isa) && in_list(&options->dtypes, kernel->dtype);
}

bool catalogue_fits(const struct catalogue_kernel *kernel, const struct problem *problem) {
    return strcmp(kernel->op, problem->op) == 0 && strcmp(kernel->dtype, problem->dtype) == 0;
}

int catalogue_require(const struct catalogue *catalogue, const struct options *options) {
    const struct catalogue_kernel *lacking = NULL;
    size_t matching = 0;
    for (size_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        if (catalogue_selects(options, k)) {
            matching++;
            if (k->runs) {
                return EXIT_DONE;
            }
            lacking = k;
        }
    }
    if (lacking) {
        diag_error("nothing that was asked for can run here: %s needs %s: %s", lacking->name,
                   lacking->isa, lacking->why_not);
        return EXIT_CANNOT_RUN;
    }
    // A word of isa.cmake whose kernels this build does not have.
    for (size_t i = 0; matching == 0 && i < options->isas.count; i++) {
        const char *why_not;
        if (!catalogue_isa_runs(options->isas.items[i], options->max_isa, &why_not)) {
            diag_error("nothing that was asked for can run here: %s: %s", options->isas.items[i],
                       why_not);
            return EXIT_CANNOT_RUN;
        }
    }
    diag_error("no kernel matches the selection%s%s: see `mhabench list`",
               options->kernels.count ? ", --kernel " : "",
               options->kernels.count ? options->kernels.items[0] : "");
    return EXIT_USAGE;
}

/// Gets the kernel that --with names for an op; NULL when it names none.
static const char *named_with(const struct options *options, const char *op) {
    const size_t length = strlen(op);
    for (size_t i = 0; i < options->with.count; i++) {
        const char *pair = options->with.items[i];
        if (strncmp(pair, op, length) == 0 && pair[length] == '=') {
            return pair + length + 1;
        }
    }
    return NULL;
}

/// Tells whether `a` is a better choice than `b`, which stands before it in the list.
static bool better(const struct catalogue_kernel *a, const struct catalogue_kernel *b) {
    const int a_isa = mha_isa_find(a->isa), b_isa = mha_isa_find(b->isa);
    const bool a_own = strncmp(a->tag, "autovec", strlen("autovec")) != 0;
    const bool b_own = strncmp(b->tag, "autovec", strlen("autovec")) != 0;
    return a_isa > b_isa || (a_isa == b_isa && a_own && !b_own);
}

int catalogue_choose(const struct catalogue *catalogue, const struct options *options,
                     const char *op, const struct catalogue_kernel **kernel) {
    const char *name = named_with(options, op);
    const struct catalogue_kernel *lacking = NULL;
    *kernel = NULL;
    for (size_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        const bool wanted = name != NULL
                                ? strcmp(k->name, name) == 0
                                : !k->peer && k->plugin == NULL && in_list(&options->isas, k->isa);
        if (wanted && strcmp(k->op, op) == 0 && strcmp(k->dtype, element_word(ELEMENT_F32)) == 0) {
            lacking = k->runs ? lacking : k;
            *kernel = k->runs && (*kernel == NULL || better(k, *kernel)) ? k : *kernel;
        }
    }
    if (*kernel != NULL) {
        return EXIT_DONE;
    }
    if (lacking != NULL) {
        diag_error("%s needs %s: %s", lacking->name, lacking->isa, lacking->why_not);
        return EXIT_CANNOT_RUN;
    }
    if (name != NULL) {
        diag_error("--with '%s=%.200s': no such kernel of %s: see `mhabench list --op %s`", op,
                   name, op, op);
    } else {
        diag_error("no kernel of %s matches --isa: see `mhabench list --op %s`", op, op);
    }
    return EXIT_USAGE;
}

void catalogue_free(struct catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->count; i++) {
        struct catalogue_kernel *k = &catalogue->kernels[i];
        char *const texts[] = {k->name,    k->op,     k->dtype,     k->isa,     k->tag,
                               k->summary, k->plugin, k->code_hash, k->library, k->version};
        for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
            free(texts[t]);
        }
    }
    free(catalogue->kernels);
    memset(catalogue, 0, sizeof(*catalogue));
}
