/// concat_f32, NEON: blocks of MOVE_TOKENS tokens, head by head; a row goes by 8 vectors, all
/// loaded before the first is stored. For outputs that fit a cache. Bit-exact: no lane is computed
/// with.
/// Tail: overlapping vectors, single elements below 4. Registers: 8 of 32 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_neon.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, MOVE_NEAR, move_neon_row, NULL);
}

const struct mha_kernel concat_f32_neon_u8 = {
    .name = "concat_f32_neon_u8",
    .op = "concat",
    .dtype = "f32",
    .isa = "neon",
    .tag = "u8",
    .summary = "128-bit vectors, 8 at a time, blocks of 8 tokens",
    .run = {.concat = run},
    .row_multiple = MOVE_TOKENS,
    .step = MOVE_NEON_STEP,
};
