/// A kernel library for the tests of `ab`: concat kernels that are well or badly behaved. SIDE is 0
/// for the base and 1 for the new one, which differs in what the kernels' names tell.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static size_t weight_bytes(const struct mha_shape *shape) {
    return shape->heads * shape->head_dim * MHA_PROJ_COLS * sizeof(float);
}

/// The new one takes its time over the weight, which is packed once and before all samples.
static void pack_slowly(const struct mha_proj_args *args, void *packed) {
    usleep(SIDE ? 50000 : 1);
    for (size_t i = 0; i < args->depth; i++) {
        memcpy((float *)packed + i * args->cols, (const float *)args->w + i * args->w_stride,
               args->cols * sizeof(float));
    }
}

static void run_packed(const struct mha_proj_args *args, void *workspace) {
    (void)workspace;
    const float *w = args->packed;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        for (size_t j = 0; j < args->cols; j++) {
            float sum = 0.0f;
            for (size_t i = 0; i < args->depth; i++) {
                sum += x[i] * w[i * args->cols + j];
            }
            args->y[r * args->y_stride + j] = sum;
        }
    }
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

static const struct mha_kernel packs = {
    .name = "out_proj_f32_scalar_packs",
    .op = "out_proj",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "packs",
    .run = {.out_proj = run_packed},
    .pack = {.out_proj = pack_slowly},
    .packed_bytes = weight_bytes,
};

// Drift claims to be the same code on both sides, which fine is.
static const struct mha_library_entry entries[] = {
    {&fine, "1000"},  {&slow, SIDE ? "2001" : "2000"},
    {&drift, "3000"}, {&wrong, ""},
    {&crash, ""},     {&one_sided, ""},
    {&narrow, ""},    {&packs, ""},
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
