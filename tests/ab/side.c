/// A kernel library for the tests of `ab`: concat kernels that are well or badly behaved. SIDE is 0
/// for the base and 1 for the new one, which differs in what the kernels' names tell.
#include <stdlib.h>
#include <string.h>

#include "mha_kernel.h"

static void concat(const struct mha_concat_args *args) {
    const float *x = args->x;
    float *y = args->y;
    for (size_t t = 0; t < args->tokens; t++) {
        for (size_t h = 0; h < args->heads; h++) {
            memcpy(y + t * args->y_stride + h * args->head_dim,
                   x + h * args->x_head_stride + t * args->x_stride,
                   args->head_dim * sizeof(float));
        }
    }
}

static void run_fine(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    concat(args);
}

/// The new one does four times the work.
static void run_slow(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    for (int i = 0; i < (SIDE ? 4 : 1); i++) {
        concat(args);
        __asm__ volatile("" : : "r"(args->y) : "memory");
    }
}

static void run_wrong(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    concat(args);
    if (SIDE) {
        ((float *)args->y)[0] += 1;
    }
}

static void run_crash(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    concat(args);
    if (SIDE) {
        abort();
    }
}

/// Takes one head only, on the new side.
static bool supports_one(const struct mha_shape *shape, const struct mha_mask *mask,
                         const char **why) {
    (void)mask;
    *why = "one head only";
    return !SIDE || shape->heads == 1;
}

// A name of each side's own.
#if SIDE
#define ONE_SIDED "fresh"
#else
#define ONE_SIDED "gone"
#endif

#define KERNEL(the_tag, function)                                                              \
    {                                                                                          \
        .name = "concat_f32_scalar_" the_tag, .op = "concat", .dtype = "f32", .isa = "scalar", \
        .tag = the_tag, .run = {.concat = function}, .flags = 0                                \
    }

static const struct mha_kernel fine = KERNEL("fine", run_fine);
static const struct mha_kernel slow = KERNEL("slow", run_slow);
static const struct mha_kernel drift = KERNEL("drift", run_slow);
static const struct mha_kernel wrong = KERNEL("wrong", run_wrong);
static const struct mha_kernel crash = KERNEL("crash", run_crash);
static const struct mha_kernel one_sided = KERNEL(ONE_SIDED, run_fine);
static const struct mha_kernel narrow = {
    .name = "concat_f32_scalar_narrow",
    .op = "concat",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "narrow",
    .run = {.concat = run_fine},
    .supports = supports_one,
};

// Drift claims to be the same code on both sides, which fine is.
static const struct mha_library_entry entries[] = {
    {&fine, "1000"},  {&slow, SIDE ? "2001" : "2000"},
    {&drift, "3000"}, {&wrong, ""},
    {&crash, ""},     {&one_sided, ""},
    {&narrow, ""},
};

static const struct mha_library library = {
    .abi_version = MHA_ABI_VERSION,
    .kernel_bytes = sizeof(struct mha_kernel),
    .name = "side",
    .version = SIDE ? "new" : "base",
    .count = sizeof(entries) / sizeof(entries[0]),
    .entries = entries,
};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
