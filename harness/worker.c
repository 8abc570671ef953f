#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ab.h"
#include "abi_guard.h"
#include "diag.h"
#include "fault_report.h"
#include "pipeline.h"
#include "protocol.h"
#include "tensors.h"

void worker_send_kernels(const struct kernel_table *table, int side) {
    for (size_t i = 0; i < table->count; i++) {
        const struct loaded_kernel *l = &table->kernels[i];
        const struct mha_kernel *k = l->kernel;
        protocol_send(
            WORKER_EVENT_FD,
            json_pack(
                "{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:b, s:s*, s:s, s:s, s:s, s:I, s:I}",
                "event", "kernel", "side", side, "name", k->name, "op", k->op, "dtype", k->dtype,
                "isa", k->isa, "tag", k->tag, "summary", k->summary ? k->summary : "", "peer",
                (k->flags & MHA_FLAG_PEER) != 0, "exponential", k->exp_f32 != NULL, "plugin",
                l->plugin, "code_hash", l->code_hash, "library", l->library, "version", l->version,
                "step", (json_int_t)(k->step ? k->step : 16), "flops_per_step",
                (json_int_t)k->flops_per_step));
    }
}

/// Says which library's code is about to run: its constructors may end the process.
static void send_loading(const char *path) {
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:s}", "event", "loading", "path", path));
}

static json_t *read_job(void) {
    FILE *file = fdopen(WORKER_JOB_FD, "r");
    json_error_t error;
    json_t *job = file ? json_loadf(file, 0, &error) : NULL;
    if (file) {
        fclose(file);
    }
    return job;
}

/// Composes the ops that are made of others, with the kernels that the job names.
static bool add_pipelines(struct worker *worker, char *error, size_t error_size) {
    const json_t *with = json_object_get(worker->job, "with");
    const size_t count = json_array_size(with);
    const char **pairs = diag_alloc(calloc(count + 1, sizeof(*pairs)));
    for (size_t i = 0; i < count; i++) {
        pairs[i] = json_string_value(json_array_get(with, i));
    }
    const bool good = pipeline_add(&worker->table, count, pairs, error, error_size);
    free(pairs);
    return good;
}

int worker_main(void) {
    json_t *job = read_job();
    if (!job) {
        diag_error("%s is for the program's own use", WORKER_ARGUMENT);
        return EXIT_USAGE;
    }
    struct worker worker = {
        .job = job,
        .seed = (uint64_t)protocol_get_integer(job, "seed"),
        .threads_allowed = (int)protocol_get_integer(job, "threads_allowed"),
    };
    const json_t *plugins = json_object_get(job, "plugins");
    const size_t count = json_array_size(plugins);
    const char **paths = diag_alloc(calloc(count + 1, sizeof(*paths)));
    for (size_t i = 0; i < count; i++) {
        paths[i] = json_string_value(json_array_get(plugins, i));
    }
    fault_report_start(WORKER_EVENT_FD);
    abi_guard_start();
    char error[TENSOR_ERROR_BYTES];
    int code = EXIT_DONE;
    const json_t *tensors = json_object_get(job, "tensors");
    const bool ab = strcmp(protocol_get_string(job, "mode"), "ab") == 0;
    if (!(ab ? ab_load(job, send_loading, error, sizeof(error))
             : library_load_told(&worker.table, count, paths, send_loading, error, sizeof(error)) &&
                   add_pipelines(&worker, error, sizeof(error))) ||
        (json_is_object(tensors) && !tensors_install(tensors, error))) {
        protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:s}", "event", "error", "text", error));
        code = EXIT_USAGE;
    } else {
        // Linking with -ffast-math does it, in a constructor.
        if (!abi_guard_control_kept(error, sizeof(error))) {
            diag_note("a library %s when it was loaded; it is put right", error);
        }
        const char *mode = protocol_get_string(job, "mode");
        if (strcmp(mode, "catalogue") == 0) {
            worker_send_kernels(&worker.table, 0);
        } else if (strcmp(mode, "check") == 0) {
            worker_check(&worker);
        } else if (strcmp(mode, "exponential") == 0) {
            worker_exponential(&worker);
        } else if (strcmp(mode, "attend") == 0) {
            worker_attend(&worker);
        } else if (ab) {
            worker_ab(&worker);
        } else {
            worker_measure(&worker);
        }
        protocol_send(WORKER_EVENT_FD, json_pack("{s:s}", "event", "done"));
    }
    free(paths);
    // Straight out: libraries stay loaded, and their destructors are none of our business.
    _exit(code);
}
