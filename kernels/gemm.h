/// What the GEMM-shaped ops share whatever the ISA: how a right operand is packed and the order in
/// which a product's register tiles are computed. Packers and register tiles stand in gemm_<isa>.h.
///
/// Packed operand: B [depth, cols] is cut into panels of `nr` columns, each stored as [depth][nr],
/// one after the other; columns past the last are zero. A factor alpha is folded in by the packer:
///
///     panel 0: B[0][0..nr)  B[1][0..nr)  ...  B[depth-1][0..nr)
///     panel 1: B[0][nr..2nr) ...
///
/// The zero columns meet A in lanes that no tile stores, so an infinity in A cannot leak from them.
#ifndef MHA_GEMM_H
#define MHA_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fetch.h"
#include "widen.h"

/// Computes C [rows, cols] = A [rows, depth] * B [depth, cols], or C += that with `add`, and stores
/// rows x cols elements. rows as the ISA's gemm_rows_fn gives them, 1 <= cols <= nr. Strides in
/// elements; A and C at any alignment, rows of B at that of the ISA's vectors. B is a panel, whose
/// rows are read to their end, or gemm_direct(). Each element is one chain of fused multiply-adds
/// in the order of depth, which `add` goes on with where C left it: the same bits whatever the tile
/// that it falls into and however depth is cut.
typedef void gemm_tile_fn(size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride,
                          const float *b, size_t b_stride, bool add, float *c, size_t c_stride);

/// What some rows of a tile take beside its depth, where a mask moves on by a key from row to row:
/// of the rows - 1 steps before it, row r takes the last rows - 1 - r; of the rows - 1 steps behind
/// it, the first r.
enum gemm_stairs { GEMM_STAIRS_BEFORE = 1, GEMM_STAIRS_AFTER = 2 };

/// Gets those of a tile of `rows` rows of which the first takes `before` steps before what all
/// take, and the last `after` behind it.
static inline unsigned gemm_stairs_of(size_t rows, size_t before, size_t after) {
    return (before == rows - 1 ? GEMM_STAIRS_BEFORE : 0u) |
           (after == rows - 1 ? GEMM_STAIRS_AFTER : 0u);
}

/// As gemm_tile_fn, and the steps of `stairs`, of enum gemm_stairs, each in its place of the chain.
/// What a row does not take, of A and of B, is not in its result, NaN or not.
typedef void gemm_stairs_fn(size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride,
                            const float *b, size_t b_stride, unsigned stairs, bool add, float *c,
                            size_t c_stride);

/// As gemm_stairs_fn, and fetches along the way what the tile that follows will read of A: as many
/// rows of `depth` at the same stride from `next` on, or none where that is NULL. There need be no
/// array. What comes from beyond L2 would be waited for: rows are too short for a hardware
/// prefetcher, which sees one row's end as the end of it all.
typedef void gemm_next_fn(size_t rows, size_t cols, size_t depth, const float *a, size_t a_stride,
                          const float *b, size_t b_stride, unsigned stairs, bool add, float *c,
                          size_t c_stride, const float *next);

/// Picks the rows of the next tile, `cols` wide, out of `left`. At most mr where the tile is a
/// whole panel wide; more where a panel's end leaves accumulators free, which would only add zeros.
typedef size_t gemm_rows_fn(size_t left, size_t cols);

/// Bytes of panels that all rows of a block pass before the next panels are touched, unless
/// gemm_<isa>.h says otherwise: a quarter of a 32 KiB L1 data cache, which rows of A and C stream
/// through as well.
#ifndef GEMM_PANEL_GROUP_BYTES
#define GEMM_PANEL_GROUP_BYTES 8192u
#endif

/// Bytes of A that pass all panels before the next rows are touched, unless gemm_<isa>.h says
/// otherwise: small enough to come back from L2 for every group of panels, with room beside them.
#ifndef GEMM_ROW_BLOCK_BYTES
#define GEMM_ROW_BLOCK_BYTES 32768u
#endif

/// Bytes of a panel of a block where depth is cut, unless gemm_<isa>.h says otherwise: half of a
/// 32 KiB L1 data cache, deep enough that C is loaded and stored seldom.
#ifndef GEMM_PANEL_BYTES
#define GEMM_PANEL_BYTES ((size_t)16384)
#endif

/// Rows that pass all of depth, where that is cut, before the next ones are touched, unless
/// gemm_<isa>.h says otherwise: 0, all of them, so that a block of B stays in L2. A panel of it
/// then passes GEMM_ROW_BLOCK_BYTES of A at a time; where this is set, all of these rows.
#ifndef GEMM_DEEP_ROWS
#define GEMM_DEEP_ROWS 0
#endif

/// Columns in whole multiples of which tiles take a right operand as it lies in memory: 0, packed
/// only, unless gemm_<isa>.h says otherwise.
#ifndef GEMM_DIRECT_COLS
#define GEMM_DIRECT_COLS 0
#endif

/// Gets the depth of all blocks but the last where depth is cut.
static inline size_t gemm_block_depth(size_t nr) {
    return GEMM_PANEL_BYTES / sizeof(float) / nr;
}

/// Gets the depth of the block that begins where `left` is left.
static inline size_t gemm_depth_block(size_t left, size_t nr) {
    return left < gemm_block_depth(nr) ? left : gemm_block_depth(nr);
}

/// Gets the elements of `cols` packed columns.
static inline size_t gemm_packed_count(size_t depth, size_t cols, size_t nr) {
    return (cols + nr - 1) / nr * nr * depth;
}

/// Picks the rows of the next whole tile out of `left`: mr, but for the last two tiles of a block,
/// which share their rows evenly. A tile of one or two rows has too few accumulators to hide the
/// latency of a multiply-add.
static inline size_t gemm_tile_rows(size_t left, size_t mr) {
    if (left <= mr) {
        return left;
    }
    return left < 2 * mr && left - mr <= mr / 2 ? (left + 1) / 2 : mr;
}

/// Tells whether every row begins a cache line.
static inline bool gemm_on_lines(const void *rows, size_t stride) {
    return ((uintptr_t)rows | stride * sizeof(float)) % FETCH_LINE_BYTES == 0;
}

/// Tells whether tiles take B [depth, cols] as it is: floats in dense rows of whole lines, as the
/// panels would be. Rows far apart are packed: they meet in few sets of a cache.
static inline bool gemm_direct(const enum widen_type type, const void *b, size_t b_stride,
                               size_t cols) {
    return GEMM_DIRECT_COLS > 0 && type == WIDEN_F32 && b_stride == cols &&
           cols % (GEMM_DIRECT_COLS > 0 ? GEMM_DIRECT_COLS : 1) == 0 && gemm_on_lines(b, b_stride);
}

/// Gets the columns that pass at a time where B is taken as it is: multiples of GEMM_DIRECT_COLS,
/// at most nr, and about the same for all.
static inline size_t gemm_direct_width(size_t cols, size_t nr) {
    const size_t unit = GEMM_DIRECT_COLS > 0 ? GEMM_DIRECT_COLS : nr;
    const size_t times = (cols + nr - 1) / nr;
    return times > 0 ? (cols / unit + times - 1) / times * unit : nr;
}

/// Fetches `rows` rows of `depth` elements at once. Inlined early, as whatever does nothing else
/// must be: gcc takes a function of prefetches alone for one without effect and drops its calls.
__attribute__((always_inline)) static inline void gemm_prefetch(const enum widen_type type,
                                                                size_t rows, size_t depth,
                                                                const void *a, size_t a_stride) {
    for (size_t r = 0; r < rows; r++) {
        for (size_t p = 0; p < depth; p += FETCH_LINE_BYTES / widen_bytes(type)) {
            __builtin_prefetch(widen_at(type, a, r * a_stride + p));
        }
    }
}

/// Largest K or V of a head, in bytes, beside which L2 has room for the next head's, which is
/// fetched then while this one is computed: 0, none, unless gemm_<isa>.h says otherwise.
#ifndef GEMM_AHEAD_BYTES
#define GEMM_AHEAD_BYTES ((size_t)0)
#endif

/// A piece of memory that is fetched into L2 bit by bit, beside what is computed. There
/// need be no array.
struct gemm_ahead {
    uintptr_t at, end;
    size_t step;  ///< Bytes at a time, whole lines.
};

/// Gets the piece of `count` elements, `offset` elements from `from` on, to be fetched in `times`.
static inline struct gemm_ahead gemm_ahead_of(const enum widen_type type, size_t count,
                                              const void *from, size_t offset, size_t times) {
    const size_t bytes = count * widen_bytes(type);
    const uintptr_t at = (uintptr_t)from + offset * widen_bytes(type);
    const size_t lines = bytes / FETCH_LINE_BYTES / (times > 0 ? times : 1) + 1;
    return (struct gemm_ahead){at, at + bytes, lines * FETCH_LINE_BYTES};
}

/// Gets the rows of the K or V that follows `plane` [keys, head_dim] which stand opposite an item's
/// queries, so that each is fetched once however the queries are cut into items; none where rows
/// are not dense or L2 has no room.
static inline struct gemm_ahead gemm_ahead_opposite(const enum widen_type type, size_t first_row,
                                                    size_t rows, size_t keys, size_t head_dim,
                                                    const void *plane, size_t stride,
                                                    size_t times) {
    const bool fetch =
        stride == head_dim && keys * head_dim * widen_bytes(type) <= GEMM_AHEAD_BYTES;
    const size_t left = fetch && first_row < keys ? keys - first_row : 0;
    return gemm_ahead_of(type, (left < rows ? left : rows) * head_dim, plane,
                         (keys + first_row) * head_dim, times);
}

/// Fetches the next bit.
__attribute__((always_inline)) static inline void gemm_ahead_fetch(struct gemm_ahead *ahead) {
    const uintptr_t left = ahead->end - ahead->at;
    const uintptr_t stop = left < ahead->step ? ahead->end : ahead->at + ahead->step;
    for (; ahead->at < stop; ahead->at += FETCH_LINE_BYTES) {
        __builtin_prefetch((const void *)ahead->at, 0, 2);
    }
}

/// Gets the tiles of [rows, cols].
static inline size_t gemm_tile_count(size_t mr, size_t nr, size_t rows, size_t cols) {
    return ((rows + mr - 1) / mr) * ((cols + nr - 1) / nr);
}

/// Gets the rows of A that pass all panels before the next ones are touched.
static inline size_t gemm_row_block(size_t mr, size_t depth) {
    const size_t tiles = GEMM_ROW_BLOCK_BYTES / (mr * sizeof(float) * depth);
    return (tiles > 0 ? tiles : 1) * mr;
}

/// Fetches lines of C [rows, cols].
__attribute__((always_inline)) static inline void gemm_fetch_sums(size_t rows, size_t cols,
                                                                  const float *c, size_t c_stride) {
    for (size_t r = 0; r < rows; r++) {
        fetch_bytes(FETCH_INTO_L1, cols * sizeof(*c), c + r * c_stride);
    }
}

/// Computes the tiles of C [rows, cols] in the columns [first, last) of rows [top, bottom), `nr`
/// wide or less; beside each its own lines of C are fetched with `fetch`, and the next bits of
/// `pieces` pieces of memory.
__attribute__((always_inline)) static inline void gemm_tiles(
    gemm_tile_fn *tile, gemm_rows_fn *rows_of, size_t nr, size_t top, size_t bottom, size_t first,
    size_t last, size_t depth, const float *a, size_t a_stride, const float *packed, bool add,
    float *c, size_t c_stride, bool fetch, const size_t pieces, struct gemm_ahead *ahead) {
    const size_t most = last - first < nr ? last - first : nr;
    for (size_t row = top, height = 0; row < bottom && first < last; row += height) {
        height = rows_of(bottom - row, most);
        for (size_t col = first; col < last; col += nr) {
            if (fetch) {
                gemm_fetch_sums(height, most, c + row * c_stride + col, c_stride);
            }
            tile(height, most, depth, a + row * a_stride, a_stride, packed + col * depth, nr, add,
                 c + row * c_stride + col, c_stride);
            for (size_t i = 0; i < pieces; i++) {
                gemm_ahead_fetch(&ahead[i]);
            }
        }
    }
}

/// Computes C [rows, cols] = A [rows, depth] * B, or C += that with `add`, B packed as above:
/// `block` rows, whole tiles, pass all panels before the next ones are touched. With `fetch`
/// a tile's own lines of C are fetched beside it, and along the way `pieces` pieces of memory.
/// `tile`, `rows_of` and `pieces` are constants where this is called.
static inline void gemm_packed(gemm_tile_fn *tile, gemm_rows_fn *rows_of, size_t nr, size_t block,
                               size_t rows, size_t cols, size_t depth, const float *a,
                               size_t a_stride, const float *packed, bool add, float *c,
                               size_t c_stride, bool fetch, const size_t pieces,
                               struct gemm_ahead *ahead) {
    const size_t panels = GEMM_PANEL_GROUP_BYTES / (nr * sizeof(float) * depth);
    const size_t group = (panels > 0 ? panels : 1) * nr;
    for (size_t top = 0; top < rows; top += block) {
        const size_t bottom = rows - top < block ? rows : top + block;
        for (size_t first = 0; first < cols; first += group) {
            const size_t last = cols - first < group ? cols : first + group;
            const size_t whole = first + (last - first) / nr * nr;
            gemm_tiles(tile, rows_of, nr, top, bottom, first, whole, depth, a, a_stride, packed,
                       add, c, c_stride, fetch, pieces, ahead);
            gemm_tiles(tile, rows_of, nr, top, bottom, whole, last, depth, a, a_stride, packed, add,
                       c, c_stride, fetch, pieces, ahead);
        }
    }
}

/// Packs B = alpha * transpose(bt), bt [cols, depth] of floats, in panels as above.
typedef void gemm_pack_transposed_fn(const float *bt, size_t bt_stride, size_t cols, size_t depth,
                                     float alpha, float *packed);

/// Makes `rows` rows of floats of `count` elements each.
typedef void gemm_prepare_fn(const enum widen_type type, size_t rows, size_t count,
                             const void *from, size_t from_stride, float *to, size_t to_stride);

/// As `pack` of narrow elements: nr rows at a time become rows of `depth` floats in
/// room[nr * widen_stride(depth)], which are packed. All functions are constants where this is
/// called.
static inline void gemm_pack_transposed_narrow(gemm_prepare_fn *prepare,
                                               gemm_pack_transposed_fn *pack, size_t nr,
                                               const enum widen_type type, const void *bt,
                                               size_t bt_stride, size_t cols, size_t count,
                                               size_t depth, float alpha, float *packed,
                                               float *room) {
    const size_t stride = widen_stride(depth);
    for (size_t first = 0; first < cols; first += nr) {
        const size_t some = cols - first < nr ? cols - first : nr;
        prepare(type, some, count, widen_at(type, bt, first * bt_stride), bt_stride, room, stride);
        pack(room, stride, some, depth, alpha, packed + first * depth);
    }
}

/// Packs B [depth, cols] in blocks of depth, one behind the other, each packed as above. `pack` is
/// that of the ISA.
typedef void gemm_pack_fn(const float *b, size_t b_stride, size_t cols, size_t depth,
                          float *packed);

static inline void gemm_pack_deep(gemm_pack_fn *pack, size_t nr, const float *b, size_t b_stride,
                                  size_t cols, size_t depth, float *packed) {
    for (size_t p = 0; p < depth; p += gemm_block_depth(nr)) {
        pack(b + p * b_stride, b_stride, cols, gemm_depth_block(depth - p, nr),
             packed + gemm_packed_count(p, cols, nr));
    }
}

/// Gets the rows that pass all of depth together: about the same for all, and a multiple of mr.
static inline size_t gemm_deep_rows(size_t rows, size_t mr) {
    const size_t most = GEMM_DEEP_ROWS > 0 ? GEMM_DEEP_ROWS : rows;
    const size_t times = rows > most ? (rows + most - 1) / most : 1;
    return ((rows + times - 1) / times + mr - 1) / mr * mr;
}

/// Computes C [rows, cols] = A [rows, depth] * B for any depth, B packed by gemm_pack_deep(): a
/// block of depth after the other is added to C.
static inline void gemm_packed_deep(gemm_tile_fn *tile, gemm_rows_fn *rows_of, size_t mr, size_t nr,
                                    size_t rows, size_t cols, size_t depth, const float *a,
                                    size_t a_stride, const float *packed, float *c,
                                    size_t c_stride) {
    const size_t together = gemm_deep_rows(rows, mr);
    for (size_t top = 0; top < rows; top += together) {
        const size_t some = rows - top < together ? rows - top : together;
        for (size_t p = 0; p < depth; p += gemm_block_depth(nr)) {
            const size_t deep = gemm_depth_block(depth - p, nr);
            const size_t block = GEMM_DEEP_ROWS > 0 ? together : gemm_row_block(mr, deep);
            gemm_packed(tile, rows_of, nr, block, some, cols, deep, a + top * a_stride + p,
                        a_stride, packed + gemm_packed_count(p, cols, nr), p > 0,
                        c + top * c_stride, c_stride, false, 0, NULL);
        }
    }
}

#endif
