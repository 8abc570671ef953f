/// split_f32 as the compiler vectorises it: the same blocks as the hand-written variants, in plain
/// C. Includers define MHA_ISA_NAME and MHA_KERNEL_SYMBOL. Bit-exact. Tail: the compiler's.
#include "mha_kernel.h"
#include "move.h"
#include "move_autovec.h"

static void run(const struct mha_split_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_split(args);
    move_heads(&heads, MOVE_NEAR, move_autovec_row, NULL);
}

const struct mha_kernel MHA_KERNEL_SYMBOL = {
    .name = "split_f32_" MHA_ISA_NAME "_autovec",
    .op = "split",
    .dtype = "f32",
    .isa = MHA_ISA_NAME,
    .tag = "autovec",
    .summary = "plain C, vectorised by the compiler",
    .run = {.split = run},
    .row_multiple = MOVE_TOKENS,
    .step = MOVE_AUTOVEC_TILE,
};
