/// concat_f32, NEON with non-temporal store pairs (STNP) and prefetch of the block to come: for
/// outputs that exceed the caches. Blocks of MOVE_BLOCK_TOKENS tokens, head by head. Bit-exact.
/// Tail: overlapping vectors, single elements below 4. Registers: 4 of 32 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_neon.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, move_neon_rows_nt);
}

const struct mha_kernel concat_f32_neon_nt = {
    .name = "concat_f32_neon_nt",
    .op = "concat",
    .dtype = "f32",
    .isa = "neon",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch, blocks of 8 tokens",
    .run = {.concat = run},
    .row_multiple = MOVE_BLOCK_TOKENS,
    .step = 2 * MOVE_NEON_PAIR,
};
