/// concat_f32, AVX-512 with streaming stores and prefetch of the block to come: for outputs that
/// exceed the caches, where a plain store would read the line first. Order: MOVE_SIDE_BY_SIDE.
/// Whole cache lines are streamed, those that rows share included; a line of which others own a
/// part is stored plainly, so that every alignment is right. Bit-exact. Tail: masked stores of the
/// row's own elements. Registers: 1 of 32 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx512.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, MOVE_SIDE_BY_SIDE, move_avx512_row, move_avx512_row_nt);
    move_avx512_fence();
}

const struct mha_kernel concat_f32_avx512_nt = {
    .name = "concat_f32_avx512_nt",
    .op = "concat",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch, pages of a token's heads",
    .run = {.concat = run},
    .row_multiple = MOVE_TOKENS_SIDE_BY_SIDE,
    .step = MOVE_AVX512_LINE,
};
