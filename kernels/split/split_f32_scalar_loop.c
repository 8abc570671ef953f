/// split_f32, plain C, one element at a time; bit-exact.
#include "mha_kernel.h"
#include "move.h"
#include "move_scalar.h"

static void run(const struct mha_split_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_split(args);
    move_heads(&heads, MOVE_NEAR, move_scalar_row, NULL);
}

const struct mha_kernel split_f32_scalar_loop = {
    .name = "split_f32_scalar_loop",
    .op = "split",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.split = run},
    .row_multiple = MOVE_TOKENS,
    .step = 8,
};
