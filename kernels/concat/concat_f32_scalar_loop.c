/// concat_f32, plain C, one element at a time; bit-exact.
#include "mha_kernel.h"
#include "move.h"
#include "move_scalar.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, MOVE_NEAR, move_scalar_row, NULL);
}

const struct mha_kernel concat_f32_scalar_loop = {
    .name = "concat_f32_scalar_loop",
    .op = "concat",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "loop",
    .summary = "plain C, one element at a time",
    .run = {.concat = run},
    .row_multiple = MOVE_TOKENS,
    .step = 8,
};
