/// A shared library that one peer module has to itself: state inside the library, such as the ISA
/// it is held to, is then shared with no other copy of it. The copies are made by CMakeLists.txt,
/// beside the module.
#ifndef MHA_PRIVATE_LIBRARY_H
#define MHA_PRIVATE_LIBRARY_H

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/// Loads `file` from the folder of the module that calls this; NULL when it cannot be had, and
/// dlerror() says why. Its symbols bind to its own definitions first: other copies export the same
/// names.
static inline void *private_library_open(const char *file) {
    static const char here = 0;
    char path[PATH_MAX];
    Dl_info module;
    if (dladdr(&here, &module) == 0) {
        return NULL;
    }
    const char *slash = strrchr(module.dli_fname, '/');
    const int folder = slash ? (int)(slash - module.dli_fname) + 1 : 0;
    snprintf(path, sizeof(path), "%.*s%s", folder, module.dli_fname, file);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

/// Stores the address of a function of the library, or of what it depends on, to *pointer; false
/// when there is none.
static inline bool private_library_get(void *library, const char *name, void *pointer) {
    void *const symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof(symbol));
    return symbol != NULL;
}

/// The thread count of the OpenMP run-time that the library is linked with, which need not be the
/// harness's.
struct private_threads {
    int (*get)(void);
    void (*set)(int count);
};

static inline bool private_threads_find(struct private_threads *threads, void *library) {
    return private_library_get(library, "omp_get_max_threads", (void *)&threads->get) &&
           private_library_get(library, "omp_set_num_threads", (void *)&threads->set);
}

/// Makes the library do what follows on the calling thread alone. Returns what
/// private_threads_release() takes, by which the caller has its own count back.
static inline int private_threads_hold(const struct private_threads *threads) {
    const int before = threads->get();
    if (before != 1) {
        threads->set(1);
    }
    return before;
}

static inline void private_threads_release(const struct private_threads *threads, int before) {
    if (before != 1) {
        threads->set(before);
    }
}

#endif
