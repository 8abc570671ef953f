/// A library of 20 kernels for each of three ops, all of them this project's own under other names,
/// one of which may be slowed on purpose: after its work it does a share of the same work again, on
/// scratch memory. So every row of a table does real work, and one a little more of it.
///
/// What is wrapped and what is slowed stands in a file beside the library, <library>.conf:
///   library <path of libmha_kernels.so>
///   slow <kernel> <share>
/// The share is of rows, and rows are whole: what is left over is carried to the next call.
#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "mha_kernel.h"

enum { ALIASES = 20, OPS = 3 };

/// Results of the extra work go here; an item that needs more is not for this library.
static _Thread_local float scratch[1 << 18];

static const struct mha_kernel *real[OPS];
static double share[OPS][ALIASES];

/// Rows of extra work that a call owes.
static size_t owed(int op, int alias, size_t rows, size_t row_elements) {
    static _Thread_local double carried;
    if (share[op][alias] == 0) {
        return 0;
    }
    carried += share[op][alias] * (double)rows;
    size_t extra = (size_t)carried;
    carried -= (double)extra;
    const size_t fit = row_elements ? sizeof(scratch) / sizeof(*scratch) / row_elements : 0;
    extra = extra < rows ? extra : rows;
    return extra < fit ? extra : fit;
}

static void softmax(int alias, const struct mha_softmax_args *args, void *workspace) {
    real[0]->run.softmax(args, workspace);
    struct mha_softmax_args extra = *args;
    extra.rows = owed(0, alias, args->rows, args->cols);
    if (extra.rows > 0) {
        extra.y = scratch;
        extra.y_stride = args->cols;
        real[0]->run.softmax(&extra, workspace);
    }
}

static void concat(int alias, const struct mha_concat_args *args, void *workspace) {
    real[1]->run.concat(args, workspace);
    struct mha_concat_args extra = *args;
    extra.tokens = owed(1, alias, args->tokens, args->heads * args->head_dim);
    if (extra.tokens > 0) {
        extra.y = scratch;
        extra.y_stride = args->heads * args->head_dim;
        real[1]->run.concat(&extra, workspace);
    }
}

static void qk(int alias, const struct mha_qk_args *args, void *workspace) {
    real[2]->run.qk(args, workspace);
    struct mha_qk_args extra = *args;
    extra.rows = owed(2, alias, args->rows, args->heads * args->seq_kv);
    if (extra.rows > 0) {
        extra.s = scratch;
        extra.s_stride = args->seq_kv;
        extra.s_head_stride = extra.rows * args->seq_kv;
        real[2]->run.qk(&extra, workspace);
    }
}

// A kernel's function takes no word of its own: one function per name.
// clang-format off
#define EACH_ALIAS(X, op) \
    X(op, 0) X(op, 1) X(op, 2) X(op, 3) X(op, 4) X(op, 5) X(op, 6) X(op, 7) X(op, 8) X(op, 9) \
    X(op, 10) X(op, 11) X(op, 12) X(op, 13) X(op, 14) X(op, 15) X(op, 16) X(op, 17) X(op, 18) \
    X(op, 19)
// clang-format on
#define FUNCTION(op, n)                                                         \
    static void op##_##n(const struct mha_##op##_args *args, void *workspace) { \
        op(n, args, workspace);                                                 \
    }
#define ENTRY(op, n) op##_##n,
EACH_ALIAS(FUNCTION, softmax)
EACH_ALIAS(FUNCTION, concat)
EACH_ALIAS(FUNCTION, qk)
static mha_softmax_fn *const softmax_functions[] = {EACH_ALIAS(ENTRY, softmax)};
static mha_concat_fn *const concat_functions[] = {EACH_ALIAS(ENTRY, concat)};
static mha_qk_fn *const qk_functions[] = {EACH_ALIAS(ENTRY, qk)};

static const char *const ops[OPS] = {"softmax", "concat", "qk"};
static struct mha_kernel kernels[OPS * ALIASES];
static char names[OPS * ALIASES][64], tags[OPS * ALIASES][8];
static struct mha_library_entry entries[OPS * ALIASES];
static struct mha_library library = {
    .abi_version = MHA_ABI_VERSION,
    .kernel_bytes = sizeof(struct mha_kernel),
    .name = "slowed",
    .version = "",
    .count = (size_t)OPS * ALIASES,
    .entries = entries,
};

_Noreturn static void fail(const char *what, const char *which) {
    fprintf(stderr, "slowed: %s: %s\n", which, what);
    _exit(2);
}

/// Picks the f32 kernel of the best ISA that runs here; of several the first.
static const struct mha_kernel *pick(const struct mha_library *from, const char *op) {
    const struct mha_kernel *best = NULL;
    for (size_t i = 0; i < from->count; i++) {
        const struct mha_kernel *k = from->entries[i].kernel;
        const int isa = mha_isa_find(k->isa);
        if (strcmp(k->op, op) == 0 && strcmp(k->dtype, "f32") == 0 && isa >= 0 &&
            mha_isa_status((size_t)isa, NULL).runs && (!best || isa > mha_isa_find(best->isa))) {
            best = k;
        }
    }
    return best;
}

static void wrap(const struct mha_library *from) {
    for (size_t op = 0; op < OPS; op++) {
        real[op] = pick(from, ops[op]);
        if (!real[op]) {
            fail("no kernel of this op runs here", ops[op]);
        }
        for (size_t n = 0; n < ALIASES; n++) {
            const size_t i = op * ALIASES + n;
            kernels[i] = *real[op];
            snprintf(tags[i], sizeof(tags[i]), "w%02u", (unsigned)n % 100);
            snprintf(names[i], sizeof(names[i]), "%s_f32_%.20s_w%02u", ops[op], real[op]->isa,
                     (unsigned)n % 100);
            kernels[i].name = names[i];
            kernels[i].tag = tags[i];
            kernels[i].flags = 0;
            kernels[i].exp_f32 = NULL;
            if (op == 0) {
                kernels[i].run.softmax = softmax_functions[n];
            } else if (op == 1) {
                kernels[i].run.concat = concat_functions[n];
            } else {
                kernels[i].run.qk = qk_functions[n];
            }
            // No hash: all rows are tested, whether they changed or not.
            entries[i] = (struct mha_library_entry){&kernels[i], ""};
        }
    }
}

/// Sets how much more work a kernel does, by its name; false when there is none of that name.
MHA_EXPORT bool slowed_set(const char *kernel, double more);
bool slowed_set(const char *kernel, double more) {
    for (size_t i = 0; i < (size_t)OPS * ALIASES; i++) {
        if (strcmp(names[i], kernel) == 0) {
            share[i / ALIASES][i % ALIASES] = more;
            return true;
        }
    }
    return false;
}

const struct mha_library *mha_kernel_library(void) {
    Dl_info self;
    char path[4200], line[4400], word[4200], kernel[64] = "";
    if (!dladdr((void *)&library, &self)) {
        fail("its own path cannot be found", "dladdr");
    }
    snprintf(path, sizeof(path), "%s.conf", self.dli_fname);
    FILE *file = fopen(path, "re");
    if (!file) {
        fail("cannot be read", path);
    }
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "library %4199[^\n]", word) == 1) {
            void *handle = dlopen(word, RTLD_NOW | RTLD_LOCAL);
            const struct mha_library *(*entry)(void) = NULL;
            void *symbol = handle ? dlsym(handle, MHA_LIBRARY_SYMBOL) : NULL;
            memcpy(&entry, &symbol, sizeof(entry));
            if (!entry) {
                fail("is no kernel library", word);
            }
            wrap(entry());
        } else if (sscanf(line, "slow %63s %31s", kernel, word) == 2 &&
                   !slowed_set(kernel, strtod(word, NULL))) {
            fail("there is no such kernel", kernel);
        }
    }
    fclose(file);
    if (!real[0]) {
        fail("names no library", path);
    }
    return &library;
}
