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

/// One line of the table of ISAs.
struct isa_line {
    struct mha_isa_status status;
    size_t kernels;     ///< Of this word, in this build and the plug-ins.
    bool runs;          ///< Also under --max-isa, and where an emulation stands in for the CPU.
    bool tested;        ///< check runs them on the CPU itself.
    char why_not[200];  ///< One phrase when they are not tested here.
};

static struct isa_line isa_line(const struct catalogue *catalogue, const struct options *options,
                                const struct machine *machine, size_t index) {
    struct isa_line line = {.status = mha_isa_status(index, NULL)};
    const char *why_not = "";
    for (size_t i = 0; i < catalogue->count; i++) {
        line.kernels += strcmp(catalogue->kernels[i].isa, line.status.isa) == 0;
    }
    line.runs = catalogue_isa_runs(line.status.isa, options->max_isa, &why_not);
    line.tested = line.runs && line.status.runs && line.kernels > 0 && !catalogue_emulated(machine);
    char lacking[160];
    mha_isa_lacking(lacking, sizeof(lacking), index, NULL);
    if (line.tested) {
        line.why_not[0] = '\0';
    } else if (!line.runs && line.status.compiled && lacking[0]) {
        snprintf(line.why_not, sizeof(line.why_not), "the CPU lacks %s", lacking);
    } else if (!line.runs) {
        snprintf(line.why_not, sizeof(line.why_not), "%s", why_not);
    } else if (line.kernels == 0) {
        snprintf(line.why_not, sizeof(line.why_not), "this build has no kernels of it");
    } else {
        snprintf(line.why_not, sizeof(line.why_not), "checks run under emulation");
    }
    return line;
}

static const char *yes_no(bool yes) {
    return yes ? "yes" : "no";
}

static void print_text(const struct options *options, const struct machine *machine,
                       const struct catalogue *catalogue) {
    printf("ISA        compiled  CPU  OS   kernels  tested\n");
    for (size_t i = 0; i < mha_isa_count(); i++) {
        const struct isa_line line = isa_line(catalogue, options, machine, i);
        const struct mha_isa_status *s = &line.status;
        printf("%-10s %-8s  %-3s  %-3s  %7zu  %s%s%s\n", s->isa, yes_no(s->compiled),
               yes_no(s->cpu_has), s->cpu_has ? yes_no(s->os_enables) : "-", line.kernels,
               yes_no(line.tested), line.why_not[0] ? ": " : "", line.why_not);
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

static void print_json(const struct options *options, const struct machine *machine,
                       const struct catalogue *catalogue) {
    json_t *isas = json_array(), *kernels = json_array(), *lacks = json_array();
    for (size_t i = 0; i < mha_isa_count(); i++) {
        const struct isa_line line = isa_line(catalogue, options, machine, i);
        const struct mha_isa_status *s = &line.status;
        json_array_append_new(
            isas, json_pack("{s:s, s:b, s:b, s:b, s:I, s:b, s:b, s:s}", "isa", s->isa, "compiled",
                            s->compiled, "cpu", s->cpu_has, "os", s->os_enables, "kernels",
                            (json_int_t)line.kernels, "runs", line.runs, "tested", line.tested,
                            "why_not", line.why_not));
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
            print_json(options, machine, &catalogue);
        } else {
            print_text(options, machine, &catalogue);
        }
        if (options->isas.count > 0 || options->kernels.count > 0) {
            code = catalogue_require(&catalogue, options);
        }
    }
    catalogue_free(&catalogue);
    return code;
}
