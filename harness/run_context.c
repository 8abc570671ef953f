#include "run_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "diag.h"
#include "protocol.h"
#include "tensors.h"

static const struct {
    const char *isa, *flags;
} isa_flags[] = {
#include "isa_flags.inc"
};

static const char *const missing[] = {
#include "missing.inc"
    NULL,
};

static const char commit[] =
#include "commit.inc"
    ;

static char *command_line;

void run_context_command(int argc, char **argv) {
    static const char name[] = "mhabench";
    size_t size = sizeof(name);
    for (int i = 1; i < argc; i++) {
        size += strlen(argv[i]) + 1;
    }
    command_line = diag_alloc(malloc(size));
    size_t used = (size_t)snprintf(command_line, size, "%s", name);
    for (int i = 1; i < argc; i++) {
        used += (size_t)snprintf(command_line + used, size - used, " %s", argv[i]);
    }
}

static json_t *time_text(json_int_t seconds) {
    const time_t at = (time_t)seconds;
    struct tm utc;
    char text[32];
    gmtime_r(&at, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

static json_t *peers(const struct catalogue *catalogue) {
    json_t *list = json_array();
    for (size_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_kernel *k = &catalogue->kernels[i];
        bool listed = !k->peer || !k->runs;
        for (size_t n = 0; n < json_array_size(list) && !listed; n++) {
            const json_t *other = json_array_get(list, n);
            listed = strcmp(json_string_value(json_object_get(other, "name")), k->library) == 0 &&
                     strcmp(json_string_value(json_object_get(other, "isa")), k->isa) == 0;
        }
        if (!listed) {
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "name", k->library, "version",
                                                  k->version, "isa", k->isa));
        }
    }
    return list;
}

int run_context_check(const struct options *options) {
    json_t *own = results_context_base("mhabench");
    json_object_set_new(own, "mhabench", json_true());
    int code = EXIT_DONE;
    for (size_t i = 0; i < options->context.count && code == EXIT_DONE; i++) {
        char *key = diag_alloc(strdup(options->context.items[i]));
        key[strcspn(key, "=")] = '\0';
        if (json_object_get(own, key)) {
            diag_error(
                "--benchmark_context '%s': the result file has a '%s' of its own; take another key",
                options->context.items[i], key);
            code = EXIT_USAGE;
        }
        free(key);
    }
    json_decref(own);
    return code;
}

json_t *run_context(const struct options *options, const struct machine *machine,
                    const struct catalogue *catalogue, const struct ceiling_list *ceilings,
                    double min_time_s, json_int_t started, bool interrupted) {
    json_t *flags = json_object(), *lacks = json_array();
    for (size_t i = 0; i < sizeof(isa_flags) / sizeof(isa_flags[0]); i++) {
        json_object_set_new(flags, isa_flags[i].isa, json_string(isa_flags[i].flags));
    }
    for (size_t i = 0; missing[i]; i++) {
        json_array_append_new(lacks, json_string(missing[i]));
    }
    json_t *context = results_context_base("mhabench");
    for (size_t i = 0; i < options->context.count; i++) {
        const char *pair = options->context.items[i];
        const char *equals = strchr(pair, '=');
        if (equals) {
            json_t *value = json_string(equals + 1);
            char *key = diag_alloc(strndup(pair, (size_t)(equals - pair)));
            json_object_set_new(context, key, value ? value : json_null());
            free(key);
        }
    }
    json_t *text = command_line ? json_string(command_line) : NULL;
    json_object_set_new(
        context, "mhabench",
        json_pack("{s:i, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:b, s:o, s:{s:s, s:s, s:s, s:o}, s:o, "
                  "s:o, s:o, s:o}",
                  "schema_version", RESULTS_SCHEMA_VERSION, "version", MHA_VERSION, "commit",
                  commit, "command", text ? text : json_null(), "seed", (json_int_t)options->seed,
                  "min_time_s", protocol_real(min_time_s), "started", time_text(started),
                  "finished", time_text((json_int_t)time(NULL)), "interrupted", interrupted,
                  "machine", machine_to_json(machine), "compiler", "name", MHA_COMPILER, "version",
                  MHA_COMPILER_VERSION, "build", MHA_BUILD_FLAGS, "flags", flags, "ceilings",
                  ceilings_to_json(ceilings), "peers", peers(catalogue), "missing", lacks,
                  "tensors", tensors_to_json(options)));
    return context;
}
