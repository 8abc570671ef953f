/// split_f32, NEON with non-temporal store pairs (STNP) and prefetch of the block to come: for
/// outputs that exceed the caches. Order: MOVE_APART. Bit-exact. Tail: overlapping vectors, single
/// elements below 4. Registers: 4 of 32 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_neon.h"

static void run(const struct mha_split_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_split(args);
    move_heads(&heads, MOVE_APART, move_neon_row, move_neon_row_nt);
}

const struct mha_kernel split_f32_neon_nt = {
    .name = "split_f32_neon_nt",
    .op = "split",
    .dtype = "f32",
    .isa = "neon",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch, blocks of 8 tokens",
    .run = {.split = run},
    .row_multiple = MOVE_TOKENS,
    .step = 2 * MOVE_NEON_PAIR,
};
