/// concat_f32, AVX-512: head by head, in blocks of tokens where these lie whole pages apart; a row
/// goes by 4 vectors, all loaded before the first is stored. For outputs that fit a cache.
/// Bit-exact: no lane is computed with. Tail: overlapping vectors, a mask below 16 elements.
/// Registers: 4 of 32 vector registers.
#include "mha_kernel.h"
#include "move.h"
#include "move_avx512.h"

static void run(const struct mha_concat_args *args, void *workspace) {
    (void)workspace;
    const struct move_heads heads = move_heads_of_concat(args);
    move_heads(&heads, move_order_by_heads(&heads), move_avx512_row, NULL);
}

const struct mha_kernel concat_f32_avx512_u4 = {
    .name = "concat_f32_avx512_u4",
    .op = "concat",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "u4",
    .summary = "512-bit vectors, 4 at a time, head by head",
    .run = {.concat = run},
    .row_multiple = MOVE_TOKENS,
    .step = MOVE_AVX512_STEP,
};
