// Plug-ins that are wrong in one way each, chosen by -DFLAW=<number>; what is expected of the
// program stands in flawed.sh.
#include <mha_kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef NAME
#define NAME "concat_f32_scalar_flawed"
#endif
#ifndef OP
#define OP "concat"
#endif
#ifndef DTYPE
#define DTYPE "f32"
#endif
#ifndef ISA
#define ISA "scalar"
#endif
#ifndef TAG
#define TAG "flawed"
#endif
#ifndef MEMBERS
#define MEMBERS
#endif
#ifndef RUN
#define RUN .run = {.concat = run},
#endif
#ifndef ABI
#define ABI MHA_ABI_VERSION
#endif
#ifndef KERNEL_BYTES
#define KERNEL_BYTES sizeof(struct mha_kernel)
#endif
#ifndef COUNT
#define COUNT 1
#endif
#ifndef HASH
#define HASH ""
#endif
#ifndef TITLE
#define TITLE "flawed"
#endif
#ifndef IN_CONSTRUCTOR
#define IN_CONSTRUCTOR
#endif
#ifndef IN_ENTRY
#define IN_ENTRY
#endif
#ifndef IN_RUN
#define IN_RUN
#endif
#ifndef SYMBOL
#define SYMBOL mha_kernel_library
#endif

#define SAY(text)                                             \
    do {                                                      \
        printf("%s", text);                                   \
        fflush(stdout);                                       \
        (void)!write(STDOUT_FILENO, text "\n", sizeof(text)); \
    } while (0)

static void run(const struct mha_concat_args *a, void *workspace) {
    (void)workspace;
    IN_RUN;
    for (size_t t = 0; t < a->tokens; t++) {
        for (size_t h = 0; h < a->heads; h++) {
            for (size_t i = 0; i < a->head_dim; i++) {
                ((float *)a->y)[t * a->y_stride + h * a->head_dim + i] =
                    ((const float *)a->x)[h * a->x_head_stride + t * a->x_stride + i];
            }
        }
    }
}

// For MEMBERS: what each of these is set to is not called.
void some_pack(const struct mha_qk_args *args, void *packed);
void some_pack(const struct mha_qk_args *args, void *packed) {
    (void)args;
    (void)packed;
}
size_t some_bytes(const struct mha_shape *shape);
size_t some_bytes(const struct mha_shape *shape) {
    return shape->head_dim;
}
void *some_create(const struct mha_shape *shape, const struct mha_mask *mask);
void *some_create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)shape;
    (void)mask;
    return NULL;
}
void some_destroy(void *state);
void some_destroy(void *state) {
    (void)state;
}
void some_exp(size_t count, const float *x, float *y);
void some_exp(size_t count, const float *x, float *y) {
    (void)count;
    (void)x;
    (void)y;
}

__attribute__((constructor)) static void constructor(void) {
    IN_CONSTRUCTOR;
}

static const struct mha_kernel kernel = {
    .name = NAME, .op = OP, .dtype = DTYPE, .isa = ISA, .tag = TAG, RUN MEMBERS};
// The run function stays used where RUN leaves it out.
void (*const flawed_run)(const struct mha_concat_args *a, void *workspace) = run;

#ifndef ENTRIES
#define ENTRIES \
    { &kernel, HASH }
#endif
static const struct mha_library_entry entries[] = {ENTRIES};
static const struct mha_library library = {ABI, KERNEL_BYTES, TITLE, "1", COUNT, entries};

#ifndef RESULT
#define RESULT &library
#endif
MHA_EXPORT const struct mha_library *SYMBOL(void);
const struct mha_library *SYMBOL(void) {
    IN_ENTRY;
    (void)&library;
    return RESULT;
}
