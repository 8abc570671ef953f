/// concat_f32, AVX-512 with streaming stores and prefetch of the block to come: for outputs that
/// exceed the caches, where a plain store would read the line first. Blocks of MOVE_BLOCK_TOKENS
/// tokens, head by head. Whole cache lines of a row are streamed; its ends, and rows that hold no
/// whole line, are stored plainly, so that every alignment is right and rows of whole lines are
/// fast. Bit-exact. Tail: masked stores of the row's own elements. Registers: 1 of 32 vector
/// registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx512.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, move_avx512_rows_nt);
    move_avx512_fence();
}

const struct mha_kernel concat_f32_avx512_nt = {
    .name = "concat_f32_avx512_nt",
    .op = "concat",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "nt",
    .summary = "streaming stores past the caches, prefetch, blocks of 8 tokens",
    .run = {.concat = run},
    .row_multiple = MOVE_BLOCK_TOKENS,
    .step = MOVE_AVX512_LINE,
};
