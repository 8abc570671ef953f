#include "library.h"

#include <dlfcn.h>
#include <jansson.h>
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

/// Finds a library of ours: beside the program (build tree), or where the installation puts it.
static void own_path(char *path, size_t size, const char *file) {
    char folder[PATH_MAX];
    library_program_folder(folder, sizeof(folder));
    snprintf(path, size, "%s/%s", folder, file);
    if (access(path, R_OK) != 0) {
        snprintf(path, size, "%s/" MHA_LIBRARIES_FROM_PROGRAM "/%s", folder, file);
    }
}

/// Longer than any sensible word: a string that is not one would make us walk through memory.
enum { WORD_BYTES = 200 };

/// A word is what a symbol, and a part of a case's name, can be made of.
static bool word_ok(const char *text) {
    const size_t length = text ? strnlen(text, WORD_BYTES) : 0;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_') {
            return false;
        }
    }
    return length > 0 && length < WORD_BYTES;
}

/// Free text, on one line; it goes through JSON, which takes UTF-8 only.
static bool line_ok(const char *text) {
    const size_t length = strnlen(text, (size_t)4 * WORD_BYTES);
    json_t *string = length < (size_t)4 * WORD_BYTES ? json_string(text) : NULL;
    const bool ok = string && strpbrk(text, "\r\n\x1b") == NULL;
    json_decref(string);
    return ok;
}

/// Tells whether an op's output has the shape of its first input, so that one may become the other.
static bool in_place_possible(const struct op_driver *driver) {
    struct problem problem = {.op = driver->name,
                              .dtype = "f32",
                              .shape = {1, 2, 1, 3, 5, 7},  // no two axes alike
                              .mask = MHA_MASK_NONE,
                              .cache = CACHE_HOT};
    struct tensor_shape shapes[OP_TENSORS_MAX];
    driver->normalise(&problem);
    const size_t count = driver->tensors(&problem, shapes);
    const struct tensor_shape *in = &shapes[0], *out = &shapes[count - 1];
    return in != out && in->planes == out->planes && in->rows == out->rows && in->cols == out->cols;
}

bool library_validate(const struct mha_kernel *k, char *error, size_t error_size) {
    if (!k) {
        snprintf(error, error_size, "an entry without a kernel");
        return false;
    }
    if (!k->name) {
        snprintf(error, error_size, "a kernel without a name");
        return false;
    }
    if (!word_ok(k->name)) {
        snprintf(error, error_size,
                 "a kernel's name must be a word of at most %d letters, digits and _",
                 WORD_BYTES - 1);
        return false;
    }
    if (!word_ok(k->op) || !word_ok(k->dtype) || !word_ok(k->isa) || !word_ok(k->tag)) {
        snprintf(error, error_size,
                 "%s: op, dtype, isa and tag must be words of letters, digits and _", k->name);
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
    if (op_find(k->op)->pipelines) {
        snprintf(error, error_size, "%s: the op %s has no kernels: it is composed of other ops'",
                 k->name, k->op);
        return false;
    }
    const enum element element = element_find(k->dtype);
    if (!op_takes(op_find(k->op), element)) {
        char known[32];
        op_dtypes(known, op_find(k->op));
        snprintf(error, error_size, "%s: there is no dtype '%s' of %s; it has %s", k->name,
                 k->dtype, k->op, known);
        return false;
    }
    if (mha_isa_find(k->isa) < 0) {
        char known[200] = "";
        for (size_t i = 0; i < mha_isa_count(); i++) {
            const size_t used = strlen(known);
            snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
                     mha_isa_status(i, NULL).isa);
        }
        snprintf(error, error_size, "%s: there is no ISA '%s'; %s are known", k->name, k->isa,
                 known);
        return false;
    }
    if (k->summary && !line_ok(k->summary)) {
        snprintf(error, error_size, "%s: the summary must be one short line of UTF-8", k->name);
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
    const uint32_t flags = MHA_FLAG_PEER | MHA_FLAG_NONDETERMINISTIC | MHA_FLAG_IN_PLACE;
    if (k->flags & ~flags) {
        snprintf(error, error_size, "%s: flags 0x%x hold bits that mean nothing", k->name,
                 k->flags);
        return false;
    }
    if ((k->flags & MHA_FLAG_IN_PLACE) &&
        (element != ELEMENT_F32 || !in_place_possible(op_find(k->op)))) {
        snprintf(error, error_size, "%s: the op %s does not work in place", k->name, k->op);
        return false;
    }
    if (k->exp_f32 && strcmp(k->op, "softmax") != 0) {
        snprintf(error, error_size, "%s: exp_f32 is for softmax only", k->name);
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
        const char *why = dlerror();
        const size_t length = strlen(path);
        // Most of the loader's messages begin with the path, but not all.
        if (strncmp(why, path, length) == 0 && strncmp(why + length, ": ", 2) == 0) {
            why += length + 2;
        }
        snprintf(error, error_size, "cannot load %s: %s", path, why);
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
    if (!library) {
        snprintf(error, error_size, "%s: %s() returned NULL", path, MHA_LIBRARY_SYMBOL);
        return false;
    }
    if (library->abi_version != MHA_ABI_VERSION) {
        snprintf(error, error_size,
                 "%s was built for ABI version %u, this program has %u: rebuild it with this "
                 "program's mha_kernel.h",
                 path, library->abi_version, MHA_ABI_VERSION);
        return false;
    }
    if (library->kernel_bytes != sizeof(struct mha_kernel)) {
        snprintf(error, error_size,
                 "%s: a descriptor has %u bytes there and %zu here: rebuild it with this program's "
                 "mha_kernel.h",
                 path, library->kernel_bytes, sizeof(struct mha_kernel));
        return false;
    }
    if ((library->name && !line_ok(library->name)) ||
        (library->version && !line_ok(library->version))) {
        snprintf(error, error_size, "%s: its name and version must be short lines of UTF-8", path);
        return false;
    }
    // Far more than anyone writes: a wild count would make us walk through memory.
    if (library->count == 0 || library->count > 10000 || !library->entries) {
        snprintf(error, error_size, "%s: a library holds 1 to 10000 kernels, here %zu%s", path,
                 library->count, library->entries ? "" : " and no entries");
        return false;
    }
    for (size_t i = 0; i < library->count; i++) {
        const struct mha_library_entry *e = &library->entries[i];
        char what[512];
        if (!library_validate(e->kernel, what, sizeof(what))) {
            snprintf(error, error_size, "%s: %s", path, what);
            return false;
        }
        if (e->code_hash && e->code_hash[0] && !word_ok(e->code_hash)) {
            snprintf(error, error_size, "%s: %s: the code hash must be a word", path,
                     e->kernel->name);
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
                                   library->name && library->name[0] ? library->name : "unnamed",
                                   library->version ? library->version : "", plugin};
    }
    return true;
}

bool library_load_file(struct kernel_table *table, const char *path, char *error,
                       size_t error_size) {
    return load_one(table, path, path, error, error_size);
}

bool library_load(struct kernel_table *table, size_t plugins, const char *const *paths, char *error,
                  size_t error_size) {
    return library_load_told(table, plugins, paths, NULL, error, error_size);
}

bool library_load_told(struct kernel_table *table, size_t plugins, const char *const *paths,
                       void (*tell)(const char *path), char *error, size_t error_size) {
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
        if (tell) {
            tell(paths[i]);
        }
        if (!load_one(table, path, paths[i], error, error_size)) {
            return false;
        }
    }
    if (tell) {
        tell("");
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
