/// Sums of weighted rows of a matrix, v, that is read once and where it is: the values of few
/// queries. The counterpart of dots.inl: includers define AXPYS_TYPE, the type of v's elements, and
/// include one of dots_<isa>.h, whose DOTS sums are made at a time here too.
///
/// Algorithm: up to four queries share what is loaded of v; the more there are, the fewer columns
/// pass at a time. Wide strips are worth more than fewer loads: strips of 64 columns for 32
/// took 17 to 18 % less for rows of 128 from memory (Zen 4). Rows to come are fetched into L1: four
/// queries took 10 to 25 % more with rows fetched into L2 (Zen 5), of pv at 4096 and 16384 keys.
///
/// Error: an element is one chain of fused multiply-adds over the rows, in their order, whatever
/// is computed beside it: |error| <= gamma_n sum_j |p_j v_ji| (Higham 2002, section 3.1).
///
/// Tail: exact loads and stores.
#include <stdbool.h>
#include <stddef.h>

#include "fetch.h"
#include "few.h"
#include "widen.h"

/// Sums n rows of v, of `width` elements: LANES * `vectors`, or less in a single vector. With each
/// row fetches as many lines from `ahead` on, and from `along_bytes` behind for the next one,
/// unless that is NULL. Both numbers are constants where this is called, at most DOTS together.
__attribute__((always_inline)) static inline void axpys_of(const size_t queries,
                                                           const size_t vectors, size_t width,
                                                           const float *p, size_t p_stride,
                                                           size_t n, const void *v, size_t v_stride,
                                                           bool add, float *o, size_t o_stride,
                                                           const char *ahead, size_t along_bytes) {
    const size_t bytes = vectors * LANES * widen_bytes(AXPYS_TYPE);
    lanes sum[DOTS];
#pragma GCC unroll 16
    for (size_t c = 0; c < queries * vectors; c++) {
        const float *from = o + c / vectors * o_stride + c % vectors * LANES;
        sum[c] = add ? lanes_load(from, width) : lanes_set(0.0f);
    }
    for (size_t j = 0; j < n; j++, v = widen_at(AXPYS_TYPE, v, v_stride), p++) {
        if (ahead != NULL) {
            fetch_bytes(FETCH_INTO_L1, bytes, ahead);
            ahead += along_bytes;
        }
        lanes weight[FEW_TOGETHER];
#pragma GCC unroll 4
        for (size_t q = 0; q < queries; q++) {
            weight[q] = lanes_set(p[q * p_stride]);
        }
#pragma GCC unroll 16
        for (size_t c = 0; c < vectors; c++) {
            const lanes loaded = lanes_widen(AXPYS_TYPE, v, c * LANES, width);
            const lanes y = queries > 1 ? lanes_hold(loaded) : loaded;
#pragma GCC unroll 4
            for (size_t q = 0; q < queries; q++) {
                sum[q * vectors + c] = lanes_fma(weight[q], y, sum[q * vectors + c]);
            }
        }
    }
#pragma GCC unroll 16
    for (size_t c = 0; c < queries * vectors; c++) {
        lanes_store(o + c / vectors * o_stride + c % vectors * LANES, sum[c], width);
    }
}

/// Strips of `vectors` vectors of rows from column `i` on, as many as are whole; where `vectors` is
/// 0, none. Returns the column behind them. The rows from `ahead` on are fetched in the order of
/// memory if they are dense.
__attribute__((always_inline)) static inline size_t axpys_strips(
    const size_t queries, const size_t vectors, size_t i, size_t width, const float *p,
    size_t p_stride, size_t n, const void *v, size_t v_stride, bool add, float *o, size_t o_stride,
    const char *ahead) {
    const size_t element = widen_bytes(AXPYS_TYPE), strip = vectors * LANES;
    const bool dense = v_stride == width;
    for (; vectors > 0 && i + strip <= width; i += strip) {
        axpys_of(queries, vectors, LANES, p, p_stride, n, widen_at(AXPYS_TYPE, v, i), v_stride, add,
                 o + i, o_stride, ahead != NULL ? ahead + (dense ? n * i : i) * element : NULL,
                 (dense ? strip : v_stride) * element);
    }
    return i;
}

/// All columns for `queries` queries, a constant where this is called: 1, 2 or 4.
__attribute__((always_inline)) static inline void axpys_rows(const size_t queries, size_t width,
                                                             const float *p, size_t p_stride,
                                                             size_t n, const void *v,
                                                             size_t v_stride, bool add, float *o,
                                                             size_t o_stride, const char *ahead) {
    size_t i = 0;
#define AXPYS_STRIPS(vectors)                                                                   \
    i = axpys_strips(queries, vectors, i, width, p, p_stride, n, v, v_stride, add, o, o_stride, \
                     ahead)
    AXPYS_STRIPS(DOTS / queries);
    AXPYS_STRIPS(DOTS / queries / 2);
    AXPYS_STRIPS(DOTS / queries / 4);
    AXPYS_STRIPS(DOTS / queries / 8);
    AXPYS_STRIPS(DOTS / queries / 16);
#undef AXPYS_STRIPS
    if (i < width) {
        axpys_of(queries, 1, width - i, p, p_stride, n, widen_at(AXPYS_TYPE, v, i), v_stride, add,
                 o + i, o_stride, NULL, 0);
    }
}

/// Tells whether `queries` queries, few_together() of any number, pass rows of `width` elements as
/// a single strip: in the order of memory.
static inline bool axpys_whole(size_t queries, size_t width) {
    const size_t vectors = width / LANES;
    const bool strip = vectors * queries <= DOTS && (vectors & (vectors - 1)) == 0;
    return width <= LANES || (width % LANES == 0 && strip);
}

// One function for each number, not inlined, for its loop to have the registers for its addresses.
#define AXPYS_FUNCTION(name, queries)                                                              \
    __attribute__((noinline)) static void name(size_t width, const float *p, size_t p_stride,      \
                                               size_t n, const void *v, size_t v_stride, bool add, \
                                               float *o, size_t o_stride, const char *ahead) {     \
        axpys_rows(queries, width, p, p_stride, n, v, v_stride, add, o, o_stride, ahead);          \
    }
AXPYS_FUNCTION(axpys_4, 4)
AXPYS_FUNCTION(axpys_2, 2)
AXPYS_FUNCTION(axpys_1, 1)
#undef AXPYS_FUNCTION

/// Makes o, or adds to it, the sums of n rows of `width` elements of v, weighted by p, of `queries`
/// queries, few_together() of any number: a row of p and of o for each. Meanwhile fetches as many
/// rows from `ahead` on, which are as far apart, unless that is NULL.
static inline void axpys(size_t queries, size_t width, const float *p, size_t p_stride, size_t n,
                         const void *v, size_t v_stride, bool add, float *o, size_t o_stride,
                         const void *ahead) {
    (queries == FEW_TOGETHER ? axpys_4
     : queries == 2          ? axpys_2
                    : axpys_1)(width, p, p_stride, n, v, v_stride, add, o, o_stride, ahead);
}
