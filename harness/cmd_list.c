/// `mhabench list`: what is there, what can run, and what the build lacks.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "catalogue.h"
#include "commands.h"
#include "cpu.h"
#include "diag.h"
#include "op.h"

static const char *const missing[] = {
#include "missing.inc"
    NULL,
};

bool commands_color(const struct options *options, int fd) {
    const char *no_color = getenv("NO_COLOR");
    if (options->color != COLOR_AUTO) {
        return options->color == COLOR_ALWAYS;
    }
    return isatty(fd) && !(no_color && no_color[0]);
}

static size_t kernels_of(const struct catalogue *catalogue, const char *isa) {
    size_t count = 0;
    for (size_t i = 0; i < catalogue->count; i++) {
        count += strcmp(catalogue->kernels[i].isa, isa) == 0;
    }
    return count;
}

static void print_text(const struct options *options, const struct catalogue *catalogue) {
    printf("ISA        compiled  CPU  OS   kernels  runs\n");
    for (size_t i = 0; i < mha_isa_count(); i++) {
        const struct mha_isa_status s = mha_isa_status(i, NULL);
        const char *why_not;
        const bool runs = catalogue_isa_runs(s.isa, options->max_isa, &why_not);
        printf("%-10s %-8s  %-3s  %-3s  %7zu  %s%s\n", s.isa, s.compiled ? "yes" : "no",
               s.cpu_has ? "yes" : "no", s.os_enables ? "yes" : "no", kernels_of(catalogue, s.isa),
               runs ? "yes" : "no: ", runs ? "" : why_not);
    }
    const char *op = "";
    for (size_t o = 0; o < op_count(); o++) {
        const struct op_driver *driver = op_get(o);
        for (size_t i = 0; i < catalogue->count; i++) {
            const struct catalogue_kernel *k = &catalogue->kernels[i];
            if (strcmp(k->op, driver->name) != 0 || !catalogue_selects(options, k)) {
                continue;
            }
            if (strcmp(op, k->op) != 0) {
                op = k->op;
                printf("\n%s\n", op);
            }
            printf("  %-34s %-8s %s", k->name, k->runs ? "" : "not here", k->summary);
            if (k->peer || k->plugin) {
                printf(" [%s%s%s]", k->plugin ? k->plugin : k->library, k->version[0] ? " " : "",
                       k->version);
            }
            putchar('\n');
        }
    }
    for (size_t i = 0; missing[i]; i++) {
        printf("%sbuilt without %s\n", i == 0 ? "\n" : "", missing[i]);
    }
}

static void print_json(const struct options *options, const struct catalogue *catalogue) {
    json_t *isas = json_array(), *kernels = json_array(), *lacks = json_array();
    for (size_t i = 0; i < mha_isa_count(); i++) {
        const struct mha_isa_status s = mha_isa_status(i, NULL);
        const char *why_not;
        const bool runs = catalogue_isa_runs(s.isa, options->max_isa, &why_not);
        json_array_append_new(isas, json_pack("{s:s, s:b, s:b, s:b, s:b, s:s}", "isa", s.isa,
                                              "compiled", s.compiled, "cpu", s.cpu_has, "os",
                                              s.os_enables, "runs", runs, "why_not", why_not));
    }
    for (size_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        if (catalogue_selects(options, k)) {
            json_array_append_new(
                kernels, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:s?, s:s, s:s, s:s}",
                                   "name", k->name, "op", k->op, "dtype", k->dtype, "isa", k->isa,
                                   "tag", k->tag, "summary", k->summary, "peer", k->peer, "runs",
                                   k->runs, "plugin", k->plugin, "library", k->library, "version",
                                   k->version, "code_hash", k->code_hash));
        }
    }
    for (size_t i = 0; missing[i]; i++) {
        json_array_append_new(lacks, json_string(missing[i]));
    }
    json_t *all = json_pack("{s:o, s:o, s:o}", "isas", isas, "kernels", kernels, "missing", lacks);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
}

int cmd_list(const struct options *options, const struct machine *machine) {
    struct catalogue catalogue;
    int code = catalogue_load(&catalogue, options, machine);
    if (code == EXIT_DONE) {
        if (options->json) {
            print_json(options, &catalogue);
        } else {
            print_text(options, &catalogue);
        }
        if (options->isas.count > 0 || options->kernels.count > 0) {
            code = catalogue_require(&catalogue, options);
        }
    }
    catalogue_free(&catalogue);
    return code;
}
