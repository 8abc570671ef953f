/// Matrix products by someone else's library, as qk, pv and the projections need them. Implemented
/// once per library, in <library>.c; a module holds one of them.
#ifndef MHA_PRODUCT_H
#define MHA_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>

#include "mha_kernel.h"

/// How the right factor of a product lies in memory.
enum product_b {
    B_PLAIN,       ///< [depth, cols]
    B_TRANSPOSED,  ///< [cols, depth]
    B_PACKED,      ///< As product_pack() wrote it.
};

/// c = factor * a * b, or c += a * b; row-major. With `bf16` a and b hold such elements and strides
/// count them; only for a library that says so.
struct product {
    size_t rows;   ///< Of a and c.
    size_t cols;   ///< Of b and c.
    size_t depth;  ///< Columns of a, rows of b.
    const float *a;
    size_t a_stride;
    const float *b;
    size_t b_stride;
    enum product_b b_is;
    const float *plain;  ///< Where b is packed, [depth, cols] or NULL: what it was packed from.
    size_t plain_stride;
    float *c;
    size_t c_stride;
    float factor;  ///< 1 with `add`.
    bool add;
    bool bf16;
};

/// Tells whether the library runs at the ISA level of the module's name, which is looked at once,
/// and counts as far as a shape goes; when not, *why (unless `why` is NULL) tells the reason. No
/// code of the level runs before it.
bool product_supports(const struct mha_shape *shape, const char **why);

/// Tells whether the dimensions of a shape and the strides of dense rows are at most `most`; when
/// not, *why tells so.
static inline bool product_within(const struct mha_shape *shape, size_t most, const char **why) {
    // The longest rows are those of the three weights of qkv_proj side by side.
    if (shape->batch * shape->seq_q <= most && shape->seq_kv <= most &&
        shape->heads <= most / 3 / shape->head_dim) {
        return true;
    }
    if (why) {
        *why = "the library counts in 32-bit integers";
    }
    return false;
}

/// Gets what one shape's products need, or NULL; product_free() takes it back.
void *product_new(void);
void product_free(void *state);

/// Makes what product_run() will need for a product of these sizes, so that it does not have to;
/// pointers do not matter.
bool product_prepare(void *state, const struct product *product);

/// Computes a product; c stays as it was when the library does not do it. Serial, and re-entrant.
void product_run(const void *state, const struct product *product);

/// Prepares `count` products for a new state, and gives the state up when that cannot be done.
static inline void *product_new_for(const struct product *products, size_t count) {
    void *state = product_new();
    for (size_t i = 0; i < count && state; i++) {
        if (!product_prepare(state, &products[i])) {
            product_free(state);
            state = NULL;
        }
    }
    return state;
}

/// Gets the bytes of a right factor in the library's own layout: no fewer for more columns.
size_t product_packed_bytes(size_t depth, size_t cols);

/// Brings product->b to the library's own layout: a plain one, or where PRODUCT_PACK_COLS says so a
/// transposed one with the product's factor folded in.
void product_pack(const void *state, const struct product *product, void *packed);

#endif
