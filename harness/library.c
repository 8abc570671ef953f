#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "diag.h"
#include "op.h"

static const char *const peer_files[] = {
#include "peer_libraries.inc"
    NULL,
};

void library_program_folder(char *folder, size_t size) {
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) {
        *slash = '\0';
    }
    snprintf(folder, size, "%s", path);
}

/// Finds a library of ours: beside the program (build tree), or in ../lib/mhabench (installed).
static void own_path(char *path, size_t size, const char *file) {
    char folder[PATH_MAX];
    library_program_folder(folder, sizeof(folder));
    snprintf(path, size, "%s/%s", folder, file);
    if (access(path, R_OK) != 0) {
        snprintf(path, size, "%s/../lib/mhabench/%s", folder, file);
    }
}

static bool text_ok(const char *text) {
    return text && text[0] != '\0' && strlen(text) < 200;
}

bool library_validate(const struct mha_kernel *k, char *error, size_t error_size) {
    if (!k || !text_ok(k->name)) {
        snprintf(error, error_size, "a descriptor without a name");
        return false;
    }
    if (!text_ok(k->op) || !text_ok(k->dtype) || !text_ok(k->isa) || !text_ok(k->tag)) {
        snprintf(error, error_size, "%s: op, dtype, isa and tag must be set", k->name);
        return false;
    }
    char name[1024];
    snprintf(name, sizeof(name), "%s_%s_%s_%s", k->op, k->dtype, k->isa, k->tag);
    if (strcmp(name, k->name) != 0) {
        snprintf(error, error_size, "%s: the name must be <op>_<dtype>_<isa>_<tag>, here %s",
                 k->name, name);
        return false;
    }
    if (!op_find(k->op)) {
        snprintf(error, error_size, "%s: there is no op '%s'", k->name, k->op);
        return false;
    }
    if (strcmp(k->dtype, "f32") != 0) {
        snprintf(error, error_size, "%s: there is no dtype '%s'; f32 is known", k->name, k->dtype);
        return false;
    }
    if (mha_isa_find(k->isa) < 0) {
        snprintf(error, error_size, "%s: there is no ISA '%s'", k->name, k->isa);
        return false;
    }
    if (!k->run.softmax) {  // any member: all are function pointers
        snprintf(error, error_size, "%s: run is not set", k->name);
        return false;
    }
    if ((k->pack.qk == NULL) != (k->packed_bytes == NULL)) {
        snprintf(error, error_size, "%s: pack and packed_bytes go together", k->name);
        return false;
    }
    if (k->pack.qk && !op_find(k->op)->pack) {
        snprintf(error, error_size, "%s: the op %s has nothing to pack", k->name, k->op);
        return false;
    }
    if ((k->create == NULL) != (k->destroy == NULL)) {
        snprintf(error, error_size, "%s: create and destroy go together", k->name);
        return false;
    }
    // 2^16 rows of granularity: more is surely an uninitialised field.
    if (k->row_multiple > 65536 || k->step > 65536) {
        snprintf(error, error_size, "%s: row_multiple %u and step %u must be at most 65536",
                 k->name, k->row_multiple, k->step);
        return false;
    }
    if (strcmp(k->op, "peak") == 0 && k->flops_per_step == 0) {
        snprintf(error, error_size, "%s: flops_per_step is not set", k->name);
        return false;
    }
    return true;
}

static bool load_one(struct kernel_table *table, const char *path, const char *plugin, char *error,
                     size_t error_size) {
#if defined(MHA_SANITIZE_address)
    const int mode = RTLD_NOW | RTLD_LOCAL;  // the sanitizer's run-time refuses RTLD_DEEPBIND
#else
    // Each library keeps its own copy of what several export (cblas_sgemm).
    const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
    void *handle = dlopen(path, mode);
    if (!handle) {
        snprintf(error, error_size, "cannot load %s: %s", path, dlerror());
        return false;
    }
    const struct mha_library *(*entry)(void) = NULL;
    void *symbol = dlsym(handle, MHA_LIBRARY_SYMBOL);
    memcpy(&entry, &symbol, sizeof(entry));
    if (!entry) {
        snprintf(error, error_size, "%s does not export %s()", path, MHA_LIBRARY_SYMBOL);
        return false;
    }
    const struct mha_library *library = entry();
    if (!library || library->abi_version != MHA_ABI_VERSION) {
        snprintf(error, error_size,
                 "%s was built for ABI version %u, this program has %u: rebuild it with this "
                 "program's mha_kernel.h",
                 path, library ? library->abi_version : 0, MHA_ABI_VERSION);
        return false;
    }
    if (library->kernel_bytes != sizeof(struct mha_kernel)) {
        snprintf(error, error_size, "%s: a descriptor has %u bytes there and %zu here", path,
                 library->kernel_bytes, sizeof(struct mha_kernel));
        return false;
    }
    // Far more than anyone writes: a wild count would make us walk through memory.
    if (library->count == 0 || library->count > 10000 || !library->entries) {
        snprintf(error, error_size, "%s holds no kernels (count %zu)", path, library->count);
        return false;
    }
    for (size_t i = 0; i < library->count; i++) {
        const struct mha_library_entry *e = &library->entries[i];
        char what[512];
        if (!library_validate(e->kernel, what, sizeof(what))) {
            snprintf(error, error_size, "%s: %s", path, what);
            return false;
        }
        const struct loaded_kernel *other = library_find(table, e->kernel->name);
        if (other) {
            snprintf(error, error_size, "%s: the kernel %s exists already, in %s", path,
                     e->kernel->name, other->plugin ? other->plugin : other->library);
            return false;
        }
        table->kernels =
            diag_alloc(realloc(table->kernels, (table->count + 1) * sizeof(*table->kernels)));
        table->kernels[table->count++] =
            (struct loaded_kernel){e->kernel, e->code_hash ? e->code_hash : "",
                                   text_ok(library->name) ? library->name : "unnamed",
                                   library->version ? library->version : "", plugin};
    }
    return true;
}

bool library_load(struct kernel_table *table, size_t plugins, const char *const *paths, char *error,
                  size_t error_size) {
    memset(table, 0, sizeof(*table));
    char path[PATH_MAX + 64];
    // Another build of the kernels in place of ours: for tests, and for comparing two builds.
    const char *instead = getenv("MHABENCH_LIBRARY");
    own_path(path, sizeof(path), "libmha_kernels.so");
    if (!load_one(table, instead ? instead : path, NULL, error, error_size)) {
        return false;
    }
    for (size_t i = 0; peer_files[i]; i++) {
        char why[512];
        own_path(path, sizeof(path), peer_files[i]);
        if (!load_one(table, path, NULL, why, sizeof(why))) {
            diag_note("without a peer: %s", why);
        }
    }
    for (size_t i = 0; i < plugins; i++) {
        // dlopen() searches the system's folders for a name without a slash; a user means a file.
        snprintf(path, sizeof(path), "%s%s", strchr(paths[i], '/') ? "" : "./", paths[i]);
        if (!load_one(table, path, paths[i], error, error_size)) {
            return false;
        }
    }
    return true;
}

const struct loaded_kernel *library_find(const struct kernel_table *table, const char *name) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->kernels[i].kernel->name, name) == 0) {
            return &table->kernels[i];
        }
    }
    return NULL;
}
