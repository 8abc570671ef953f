/// Dot products of a few rows, q, with the rows of a matrix, k, that is read once and where it is:
/// the scores of few queries. Includers define DOTS_TYPE, the type of k's elements, and include one
/// of dots_<isa>.h, which defines beyond lanes_<isa>.h
///
///   DOTS                        sums at a time, a multiple of 8, which fit into registers
///   DOTS_FETCH_TWICE            for includers: whether `far` is worth it
///   lanes_widen(type, p, i, n)  elements i ... i + n of p as floats, as lanes_load() has them
///   lanes_store_sums(p, v, factor)  p[i] = factor * the sum of the lanes of v[i], i < DOTS
///
/// Algorithm: DOTS sums at a time, each a chain of multiply-adds in every lane; rows of q share
/// what is loaded of k, and are loaded once themselves, into registers that hold them. What a dot
/// product is does not depend on those that are computed beside it.
///
/// Error: a chain of ceil(depth / LANES) fused multiply-adds, the sum of the lanes in pairs, and
/// the product by the factor: at most depth + 1 roundings (Higham 2002, section 3.1).
///
/// Tail: exact loads and stores.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fetch.h"
#include "few.h"
#include "gemm.h"

/// Rows of k together for one row of q. Of floats one took 9 to 38 % longer, two 3 to 65 %; of what
/// is widened two suit AVX-512, four AVX2 (Zen 4).
enum { DOTS_ALONE = DOTS_TYPE == WIDEN_F32 ? 4 : 32 / LANES };

/// One step of depth, of LANES elements or the last `n`, of `some` rows of k: adds to sum[r * keys
/// + j].
__attribute__((always_inline)) static inline void dots_step(const size_t queries, const size_t keys,
                                                            const size_t some,
                                                            const float *const x[FEW_TOGETHER],
                                                            size_t i, const void *row,
                                                            size_t stride, size_t n, lanes *sum) {
    lanes v[FEW_TOGETHER];
#pragma GCC unroll 4
    for (size_t r = 0; r < queries; r++) {
        v[r] = lanes_load(x[r] + i, n);
        v[r] = queries > 1 ? lanes_hold(v[r]) : v[r];
    }
#pragma GCC unroll 8
    for (size_t j = 0; j < some; j++) {
        const lanes loaded = lanes_widen(DOTS_TYPE, row, j * stride, n);
        const lanes y = queries > 1 ? lanes_hold(loaded) : loaded;
#pragma GCC unroll 4
        for (size_t r = 0; r < queries; r++) {
            sum[r * keys + j] = lanes_fma(v[r], y, sum[r * keys + j]);
        }
    }
}

/// Adds to sum[r * keys + j] the products of rows x[r] with `some` rows of k. With each line of
/// these fetches another from `ahead` on unless that is NULL, and with `far` one into L2 that is
/// FETCH_FAR_BYTES behind it. The numbers of rows and `far` are constants where this is called.
__attribute__((always_inline)) static inline void dots_along(
    const size_t queries, const size_t keys, const size_t some, const float *const x[FEW_TOGETHER],
    const void *row, size_t stride, const char *ahead, const bool far, size_t depth, lanes *sum) {
    const size_t line = FETCH_LINE_BYTES / widen_bytes(DOTS_TYPE);
    size_t i = 0;
    for (; i + line <= depth; i += line) {
        if (ahead != NULL) {
            if (far) {
                fetch_lines(FETCH_INTO_L2, some,
                            (const char *)((uintptr_t)ahead + FETCH_FAR_BYTES));
            }
            ahead = fetch_lines(FETCH_INTO_L1, some, ahead);
        }
#pragma GCC unroll 8
        for (size_t u = 0; u < line; u += LANES) {
            dots_step(queries, keys, some, x, i + u, widen_at(DOTS_TYPE, row, i + u), stride, LANES,
                      sum);
        }
    }
    if (i < depth && ahead != NULL) {
        fetch_lines(FETCH_INTO_L1, some, ahead);
    }
    for (; i < depth; i += LANES) {
        const size_t left = depth - i;
        dots_step(queries, keys, some, x, i, widen_at(DOTS_TYPE, row, i), stride,
                  left < LANES ? left : LANES, sum);
    }
}

/// Writes `factor` times the dot products of `queries` rows q with `count` rows of k, DOTS or 1, to
/// s, s_stride apart; `streams` rows of k go together, one group after the other. The numbers of
/// rows and `far` are constants where this is called. Meanwhile fetches as many rows from `ahead`
/// on unless that is NULL: dense ones line by line, others before they are computed with.
__attribute__((always_inline)) static inline void dots_of(const size_t queries, const size_t count,
                                                          const size_t streams,
                                                          const float *const *q, const void *k,
                                                          size_t k_stride, const void *ahead,
                                                          const bool far, size_t depth,
                                                          float factor, float *s, size_t s_stride) {
    const size_t keys = count == 1 ? 1 : DOTS / queries;
    const float *x[FEW_TOGETHER];
#pragma GCC unroll 4
    for (size_t r = 0; r < queries; r++) {
        x[r] = q[r];
    }
    for (size_t first = 0; first < count; first += keys) {
        lanes sum[DOTS];
#pragma GCC unroll 16
        for (size_t t = 0; t < DOTS; t++) {
            sum[t] = lanes_set(0.0f);
        }
#pragma GCC unroll 16
        for (size_t j = 0; j < keys; j += streams) {
            const size_t from = (first + j) * k_stride;
            const void *next = ahead != NULL ? widen_at(DOTS_TYPE, ahead, from) : NULL;
            if (next != NULL && k_stride != depth) {
                gemm_prefetch(DOTS_TYPE, streams, depth, next, k_stride);
                next = NULL;
            }
            dots_along(queries, keys, streams, x, widen_at(DOTS_TYPE, k, from), k_stride, next, far,
                       depth, sum + j);
        }
        float scores[DOTS];
        lanes_store_sums(scores, sum, factor);
#pragma GCC unroll 4
        for (size_t r = 0; r < queries; r++) {
            memcpy(s + r * s_stride + first, scores + r * keys, keys * sizeof(*s));
        }
    }
}

// One function for each number, not inlined, for its loop to have the registers for its addresses.
#define DOTS_FUNCTION(name, queries, count, streams, far)                                         \
    __attribute__((noinline)) static void name(const float *const *q, const void *k,              \
                                               size_t k_stride, const void *ahead, size_t depth,  \
                                               float factor, float *s, size_t s_stride) {         \
        dots_of(queries, count, streams, q, k, k_stride, ahead, far, depth, factor, s, s_stride); \
    }
DOTS_FUNCTION(dots_4, 4, DOTS, DOTS / 4, false)
DOTS_FUNCTION(dots_4_far, 4, DOTS, DOTS / 4, true)
DOTS_FUNCTION(dots_2, 2, DOTS, 4, false)
DOTS_FUNCTION(dots_1, 1, DOTS, DOTS_ALONE, false)
DOTS_FUNCTION(dots_4_single, 4, 1, 1, false)
DOTS_FUNCTION(dots_2_single, 2, 1, 1, false)
DOTS_FUNCTION(dots_1_single, 1, 1, 1, false)
#undef DOTS_FUNCTION

/// Gets how many of `left` rows of k go together: DOTS, or the last ones one by one.
static inline size_t dots_count(size_t left) {
    return left >= DOTS ? DOTS : 1;
}

/// Writes `factor` times the dot products of `queries` rows q, few_together() of any number, with
/// `count` rows of k, dots_count() of any number, to s: a row of s for each of q. Meanwhile fetches
/// as many rows from `ahead` on unless that is NULL, and dense ones, if they are `far`, into L2
/// before.
static inline void dots(size_t queries, const float *const *q, size_t count, const void *k,
                        size_t k_stride, const void *ahead, bool far, size_t depth, float factor,
                        float *s, size_t s_stride) {
    const bool four = queries == FEW_TOGETHER, two = queries == 2;
    if (count == 1) {
        (four  ? dots_4_single
         : two ? dots_2_single
               : dots_1_single)(q, k, k_stride, ahead, depth, factor, s, s_stride);
    } else {
        (four && far ? dots_4_far
         : four      ? dots_4
         : two       ? dots_2
                     : dots_1)(q, k, k_stride, ahead, depth, factor, s, s_stride);
    }
}
