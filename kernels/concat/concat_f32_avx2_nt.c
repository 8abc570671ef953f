/// concat_f32, AVX2 with streaming stores and prefetch of the block to come: for outputs that
/// exceed the caches, where a plain store would read the line first. Order: MOVE_SIDE_BY_SIDE.
/// Whole cache lines are streamed, those that rows share included; a line of which others own a
/// part is stored plainly, so that every alignment is right. Bit-exact. Tail: plain stores of the
/// row's own elements. Registers: 2 of 16 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx2.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, MOVE_SIDE_BY_SIDE, move_avx2_row, move_avx2_row_nt);
    move_avx2_fence();
}

const struct mha_kernel concat_f32_avx2_nt = {
    .name = "concat_f32_avx2_nt",
    .op = "concat",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch, pages of a token's heads",
    .run = {.concat = run},
    .row_multiple = MOVE_TOKENS_SIDE_BY_SIDE,
    .step = MOVE_AVX2_LINE,
};
