/// product.h by OpenBLAS: cblas_sgemm(), one call a product.
///
/// OpenBLAS chooses its kernels by the CPU when it is loaded, or takes OPENBLAS_CORETYPE for it.
/// The module's copy is loaded with PEER_HOLD there and asked afterwards what it took: it takes
/// another core without a word where it does not know the one that it is given.
///
/// Error: as the library documents none, the usual one of a product, |error| <= gamma_(depth + 1)
/// sum |a_i b_i|, the factor included.
#include "openblas.h"

#include <cblas.h>
#include <pthread.h>
#include <stdlib.h>

#include "private_library.h"

static struct {
    struct private_threads threads;
    __typeof__(&cblas_sgemm) sgemm;
    bool ready;
    char why[300];
} openblas;

/// What OpenBLAS reads when it is loaded, and what it shall find: the core, and a size of the L2
/// cache, which would replace the CPU's own.
static const char *const variables[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};
static const char *const settings[] = {PEER_HOLD, NULL};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

static void set_variable(const char *name, const char *value) {
    if (value) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

/// Loads the library in an environment of its own; the process's is as before afterwards.
static void *load(void) {
    char *before[VARIABLES];
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        before[i] = value ? strdup(value) : NULL;
        set_variable(variables[i], settings[i]);
    }
    void *library = private_library_open(PEER_FILE);
    for (size_t i = 0; i < VARIABLES; i++) {
        set_variable(variables[i], before[i]);
        free(before[i]);
    }
    return library;
}

static void hold(void) {
    static const char version[] = "OpenBLAS " PEER_VERSION " ";
    char *(*core)(void) = NULL, *(*configuration)(void) = NULL;
    char *const why = openblas.why;
    const size_t size = sizeof(openblas.why);
    void *library = load();
    if (!library) {
        snprintf(why, size, "%s", dlerror());
    } else if (!private_threads_find(&openblas.threads, library) ||
               !private_library_get(library, "cblas_sgemm", (void *)&openblas.sgemm) ||
               !private_library_get(library, "openblas_get_corename", (void *)&core) ||
               !private_library_get(library, "openblas_get_config", (void *)&configuration)) {
        snprintf(why, size, "%s is no OpenBLAS for OpenMP", PEER_FILE);
    } else if (strncmp(configuration(), version, sizeof(version) - 1) != 0) {
        snprintf(why, size, "the library is '%s', not %s", configuration(), version);
    } else if (strcmp(core(), PEER_HOLD) != 0) {
        snprintf(why, size, "OpenBLAS runs as %s, not as %s", core(), PEER_HOLD);
    } else if (!__builtin_cpu_supports(PEER_CPU_HAS)) {
        snprintf(why, size, "OpenBLAS would run as %s, which this CPU cannot", PEER_HOLD);
    } else {
        openblas.ready = true;
    }
}

static bool ready(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hold);
    if (!openblas.ready && why) {
        *why = openblas.why;
    }
    return openblas.ready;
}

bool product_supports(const struct mha_shape *shape, const char **why) {
    // A blasint, and a stride may be some elements longer than its row.
    return product_within(shape, INT_MAX / 2, why) && ready(why);
}

void *product_new(void) {
    return &openblas;  // there is nothing to make
}

void product_free(void *state) {
    (void)state;
}

bool product_prepare(void *state, const struct product *product) {
    (void)state;
    (void)product;
    return true;
}

void product_run(const void *state, const struct product *p) {
    (void)state;
    const int before = private_threads_hold(&openblas.threads);
    openblas.sgemm(CblasRowMajor, CblasNoTrans, p->b_is == B_TRANSPOSED ? CblasTrans : CblasNoTrans,
                   (int)p->rows, (int)p->cols, (int)p->depth, p->factor, p->a, (int)p->a_stride,
                   p->b, (int)p->b_stride, p->add ? 1.0f : 0.0f, p->c, (int)p->c_stride);
    private_threads_release(&openblas.threads, before);
}
