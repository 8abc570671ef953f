/// O = P * V by a library's matrix product, over blocks of an item's rows and the keys that they
/// see: what pv and sdpa have in common.
///
/// Algorithm: where all rows of an item see the same keys, one product. Otherwise blocks of
/// BLOCK_ROWS rows: one product over the keys that all of them see, and one for each edge, where
/// some see a key and others do not. There the weights are copied and those of keys that are not
/// seen are zeros; a value that is not finite would leak through them (0 * NaN), so that such an
/// edge is done row by row. bf16 comes in pairs of keys (see peer_element.h): the first of an odd
/// number of keys and the last belong to the edges. P and V are of floats or, with PEER_BF16, of
/// bf16. Error: that of the product, see the library's .c.
#include <math.h>
#include <string.h>

#include "mha_kernel.h"
#include "peer_element.h"
#include "peer_name.h"

/// Rows of a block, and most keys of an edge: spans of neighbouring rows differ by one key at each
/// end, and where no key is seen by all rows of a block, the spans are no longer than a block.
enum { BLOCK_ROWS = 128, EDGE_KEYS = 2 * BLOCK_ROWS + 2 };

/// One block of one head, or with `prepare` the state to make its products for.
struct block {
    const struct mha_pv_args *args;
    void *prepare;
    size_t first, rows;  ///< Within the item.
    const peer_element *p;
    float *o;
    peer_element *edge;  ///< [BLOCK_ROWS][EDGE_KEYS]
};

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static struct mha_span span_of(const struct block *b, size_t row) {
    return mha_row_span(&b->args->mask, b->args->first_row + b->first + row);
}

/// The product over the keys [from, to) with these weights, whose first column is that of `from`.
static bool multiply(const struct block *b, const peer_element *p, size_t p_stride, size_t from,
                     size_t to, bool add) {
    const struct product product = {
        .rows = b->rows,
        .cols = b->args->head_dim,
        .depth = to - from,
        .a = (const void *)p,
        .a_stride = p_stride,
        .b = b->prepare
                 ? NULL
                 : (const void *)((const peer_element *)b->args->v + from * b->args->v_stride),
        .b_stride = b->args->v_stride,
        .c = b->o,
        .c_stride = b->args->o_stride,
        .factor = 1,
        .add = add,
        .bf16 = PEER_IS_BF16,
    };
    if (b->prepare) {
        return product_prepare(b->prepare, &product);
    }
    product_run(b->args->state, &product);
    return true;
}

static bool values_finite(const struct mha_pv_args *args, size_t from, size_t to) {
    // x - x is 0 for what is finite, else NaN: a sum that the compiler vectorises.
    float sum = 0;
    for (size_t j = from; j < to; j++) {
        const peer_element *v = (const peer_element *)args->v + j * args->v_stride;
        for (size_t i = 0; i < args->head_dim; i++) {
            sum += peer_float(v[i]) - peer_float(v[i]);
        }
    }
    return sum == 0;
}

/// The keys [from, to) where one of them is seen by some rows only, and a value is not finite.
static void edge_by_rows(const struct block *b, size_t from, size_t to) {
    for (size_t r = 0; r < b->rows; r++) {
        const struct mha_span span = span_of(b, r);
        const size_t end = smaller(span.end, to);
        float *o = b->o + r * b->args->o_stride;
        for (size_t j = span.begin > from ? span.begin : from; j < end; j++) {
            const peer_element *v = (const peer_element *)b->args->v + j * b->args->v_stride;
            const float weight = peer_float(b->p[r * b->args->p_stride + j]);
            for (size_t i = 0; i < b->args->head_dim; i++) {
                o[i] += weight * peer_float(v[i]);
            }
        }
    }
}

static bool edge(const struct block *b, size_t from, size_t to, bool add) {
    if (from >= to) {
        return true;
    }
    if (b->prepare) {
        return multiply(b, NULL, EDGE_KEYS, from, to, add);
    }
    if (!values_finite(b->args, from, to)) {
        for (size_t r = 0; r < b->rows && !add; r++) {
            memset(b->o + r * b->args->o_stride, 0, b->args->head_dim * sizeof(*b->o));
        }
        edge_by_rows(b, from, to);
        return true;
    }
    for (size_t r = 0; r < b->rows; r++) {
        const struct mha_span span = span_of(b, r);
        const size_t begin = smaller(span.begin > from ? span.begin : from, to);
        const size_t end = smaller(span.end > begin ? span.end : begin, to);
        peer_element *w = b->edge + r * EDGE_KEYS;
        memset(w, 0, (begin - from) * sizeof(*w));
        memcpy(w + (begin - from), b->p + r * b->args->p_stride + begin,
               (end - begin) * sizeof(*w));
        memset(w + (end - from), 0, (to - end) * sizeof(*w));
    }
    return multiply(b, b->edge, EDGE_KEYS, from, to, add);
}

static bool block(const struct block *b) {
    // Spans move forwards from row to row.
    const struct mha_span first = span_of(b, 0), last = span_of(b, b->rows - 1);
    const size_t from = first.begin / PEER_TOGETHER * PEER_TOGETHER;
    const size_t common = (last.begin + PEER_TOGETHER - 1) / PEER_TOGETHER * PEER_TOGETHER;
    const size_t common_end = first.end / PEER_TOGETHER * PEER_TOGETHER;
    const size_t to = (last.end + PEER_TOGETHER - 1) / PEER_TOGETHER * PEER_TOGETHER;
    if (common < common_end) {
        return multiply(b, b->prepare ? NULL : b->p + common, b->args->p_stride, common, common_end,
                        false) &&
               edge(b, from, common, true) && edge(b, common_end, to, true);
    }
    for (size_t r = 0; r < b->rows && from >= to && !b->prepare; r++) {
        memset(b->o + r * b->args->o_stride, 0, b->args->head_dim * sizeof(*b->o));
    }
    return edge(b, from, to, false);
}

/// Goes through one head of an item.
static bool head(const struct mha_pv_args *args, size_t h, void *prepare, void *workspace) {
    struct block b = {.args = args, .prepare = prepare, .rows = args->rows, .edge = workspace};
    const struct mha_span first = span_of(&b, 0), last = span_of(&b, args->rows - 1);
    const bool alike = first.begin == last.begin && first.end == last.end &&
                       first.begin % PEER_TOGETHER == 0 && first.end % PEER_TOGETHER == 0;
    const size_t step = alike ? args->rows : BLOCK_ROWS;
    bool good = true;
    for (; b.first < args->rows && good; b.first += step) {
        b.rows = smaller(step, args->rows - b.first);
        if (!prepare) {
            b.p =
                (const peer_element *)args->p + h * args->p_head_stride + b.first * args->p_stride;
            b.o = args->o + h * args->o_head_stride + b.first * args->o_stride;
        }
        good = block(&b);
    }
    return good;
}
