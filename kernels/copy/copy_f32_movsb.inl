/// copy_f32 by the processor's own copy instruction, REP MOVSB: its microcode may claim whole lines
/// without reading them, which no loop of stores can, and so be the ceiling in the second and third
/// level. Fast with ERMS, slow but right without. Includers define MHA_ISA_NAME and
/// MHA_KERNEL_SYMBOL; the instruction is the same at every level. Bit-exact. Tail: none.
#include "mha_kernel.h"

static void run(const struct mha_stream_args *args, void *workspace) {
    (void)workspace;
    const void *x = args->x;
    void *y = args->y;
    size_t bytes = args->count * sizeof(float);
    __asm__ volatile("rep movsb" : "+D"(y), "+S"(x), "+c"(bytes) : : "memory");
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "copy_f32_" MHA_ISA_NAME "_movsb",
    .op = "copy",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "movsb",
    .summary = "REP MOVSB",
    .run = {.copy = run},
    .step = 16,
};
