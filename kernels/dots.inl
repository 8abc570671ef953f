/// Dot products of a few rows, q, with the rows of a matrix, k, that is read once and where it is:
/// the scores of few queries. Includers define DOTS_TYPE, the type of k's elements, and include one
/// of dots_<isa>.h, which defines beyond lanes_<isa>.h
///
///   DOTS                        sums at a time, a multiple of 8, which fit into registers
///   lanes_widen(type, p, i, n)  elements i ... i + n of p as floats, as lanes_load() has them
///   lanes_store_sums(p, v, factor)  p[i] = factor * the sum of the lanes of v[i], i < DOTS
///
/// and may define DOTS_NEAR_BYTES, see dots_in_turn().
///
/// Algorithm: DOTS sums at a time, each a chain of multiply-adds in every lane; rows of q share
/// what is loaded of k. What a dot product is does not depend on those that are computed beside it.
///
/// Error: a chain of ceil(depth / LANES) fused multiply-adds, the sum of the lanes in pairs, and
/// the product by the factor: at most depth + 1 roundings (Higham 2002, section 3.1).
///
/// Tail: exact loads and stores.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gemm.h"

/// Rows of q that share what is loaded of k, at most.
enum { DOTS_TOGETHER = 4 };

/// As many independent chains as hide the latency of two multiply-adds a cycle.
enum { DOTS_CHAINS = 8 };

/// Rows of k together for one row of q where k is far away: on Zen 3 eight together took longer.
enum { DOTS_STREAMS = 4 };

#ifndef DOTS_NEAR_BYTES
#define DOTS_NEAR_BYTES SIZE_MAX
#endif

/// Whether there is any size from which on rows go in turn: not where elements are widened, which
/// takes longer than they take to come.
enum { DOTS_TURNS = DOTS_TYPE == WIDEN_F32 && DOTS_NEAR_BYTES < SIZE_MAX };

/// Tells whether rows of k go one after the other, as they lie in memory, for an item that reads
/// `bytes`: several at a time are as many streams for the hardware's prefetchers, which is what
/// takes the time where k comes from memory, but not where a cache has it.
static inline bool dots_in_turn(size_t bytes) {
    return DOTS_TURNS && bytes > DOTS_NEAR_BYTES;
}

/// One step of depth, of LANES elements or the last `n`, of `some` rows of k: adds to sum[r * keys
/// + j].
__attribute__((always_inline)) static inline void dots_step(const size_t queries, const size_t keys,
                                                            const size_t some,
                                                            const float *const x[DOTS_TOGETHER],
                                                            size_t i, const void *row,
                                                            size_t stride, size_t n, lanes *sum) {
    lanes v[DOTS_TOGETHER];
#pragma GCC unroll 4
    for (size_t r = 0; r < queries; r++) {
        v[r] = lanes_load(x[r] + i, n);
    }
#pragma GCC unroll 8
    for (size_t j = 0; j < some; j++) {
        const lanes y = lanes_widen(DOTS_TYPE, row, j * stride, n);
#pragma GCC unroll 4
        for (size_t r = 0; r < queries; r++) {
            sum[r * keys + j] = lanes_fma(v[r], y, sum[r * keys + j]);
        }
    }
}

/// Adds to sum[r * keys + j] the products of rows x[r] with `some` rows of k, and with `fetch`
/// fetches a line of those from `next` on to each line of these. The numbers of rows and `fetch`
/// are constants where this is called.
__attribute__((always_inline)) static inline void dots_along(
    const size_t queries, const size_t keys, const size_t some, const float *const x[DOTS_TOGETHER],
    const void *row, size_t stride, const bool fetch, const void *next, size_t depth, lanes *sum) {
    const size_t line = GEMM_LINE_BYTES / widen_bytes(DOTS_TYPE);
    size_t i = 0;
    for (; i + line <= depth; i += line) {
#pragma GCC unroll 8
        for (size_t j = 0; fetch && j < some; j++) {
            __builtin_prefetch(widen_at(DOTS_TYPE, next, j * stride + i));
        }
#pragma GCC unroll 8
        for (size_t u = 0; u < line; u += LANES) {
            dots_step(queries, keys, some, x, i + u, widen_at(DOTS_TYPE, row, i + u), stride, LANES,
                      sum);
        }
    }
    for (; i < depth; i += LANES) {
        const size_t left = depth - i;
        dots_step(queries, keys, some, x, i, widen_at(DOTS_TYPE, row, i), stride,
                  left < LANES ? left : LANES, sum);
    }
}

/// Writes `factor` times the dot products of `queries` rows q with `count` rows of k, DOTS or 1, to
/// s, s_stride apart; `streams` rows of k go together, one group after the other. The numbers of
/// rows are constants where this is called. Fetches as many rows from `ahead` on unless it is NULL:
/// where queries share k or rows go one by one, a line of them to each line of k: all of them at
/// once took longer on Zen 3.
__attribute__((always_inline)) static inline void dots_of(const size_t queries, const size_t count,
                                                          const size_t streams,
                                                          const float *const *q, const void *k,
                                                          size_t k_stride, const void *ahead,
                                                          size_t depth, float factor, float *s,
                                                          size_t s_stride) {
    const size_t keys = count == 1 ? 1 : DOTS / queries;
    const bool along = queries > 1 || streams == 1;
    const float *x[DOTS_TOGETHER];
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
            const void *row = widen_at(DOTS_TYPE, k, (first + j) * k_stride);
            const void *next =
                ahead != NULL ? widen_at(DOTS_TYPE, ahead, (first + j) * k_stride) : row;
            if (!along && ahead != NULL) {
                gemm_prefetch(DOTS_TYPE, streams, depth, next, k_stride);
            }
            dots_along(queries, keys, streams, x, row, k_stride, along, next, depth, sum + j);
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
#define DOTS_FUNCTION(name, queries, count, streams)                                             \
    __attribute__((noinline)) static void name(const float *const *q, const void *k,             \
                                               size_t k_stride, const void *ahead, size_t depth, \
                                               float factor, float *s, size_t s_stride) {        \
        dots_of(queries, count, streams, q, k, k_stride, ahead, depth, factor, s, s_stride);     \
    }
DOTS_FUNCTION(dots_4, 4, DOTS, DOTS / 4)
DOTS_FUNCTION(dots_2, 2, DOTS, DOTS_CHAINS / 2)
DOTS_FUNCTION(dots_1, 1, DOTS, DOTS_CHAINS)
DOTS_FUNCTION(dots_1_far, 1, DOTS, DOTS_STREAMS)
DOTS_FUNCTION(dots_4_in_turn, 4, DOTS, 1)
DOTS_FUNCTION(dots_2_in_turn, 2, DOTS, 1)
DOTS_FUNCTION(dots_1_in_turn, 1, DOTS, 1)
DOTS_FUNCTION(dots_4_single, 4, 1, 1)
DOTS_FUNCTION(dots_2_single, 2, 1, 1)
DOTS_FUNCTION(dots_1_single, 1, 1, 1)
#undef DOTS_FUNCTION

/// Gets how many of `left` rows of q go together: 4, 2 or 1.
static inline size_t dots_together(size_t left) {
    return left >= DOTS_TOGETHER ? DOTS_TOGETHER : left >= 2 ? 2 : 1;
}

/// Gets how many of `left` rows of k go together: DOTS, or the last ones one by one.
static inline size_t dots_count(size_t left) {
    return left >= DOTS ? DOTS : 1;
}

/// Gets the rows that come behind `count` rows at `at` of `rows` rows of k: what to fetch, if there
/// are as many and k is far away. Where queries share k, fetching costs little; else `far` tells.
static inline const void *dots_ahead(size_t queries, bool far, size_t rows, size_t at, size_t count,
                                     const void *k, size_t k_stride) {
    const bool wanted = (far || queries > 1) && rows - at >= 2 * count;
    return wanted ? widen_at(DOTS_TYPE, k, (at + count) * k_stride) : NULL;
}

/// Writes `factor` times the dot products of `queries` rows q, dots_together() of any number, with
/// `count` rows of k, dots_count() of any number, to s: a row of s for each of q. `in_turn` is from
/// dots_in_turn(); `ahead` from dots_ahead(), or NULL.
static inline void dots(size_t queries, const float *const *q, size_t count, const void *k,
                        size_t k_stride, bool in_turn, const void *ahead, size_t depth,
                        float factor, float *s, size_t s_stride) {
    const bool four = queries == DOTS_TOGETHER, two = queries == 2;
    if (count == 1) {
        (four  ? dots_4_single
         : two ? dots_2_single
               : dots_1_single)(q, k, k_stride, ahead, depth, factor, s, s_stride);
    } else if (DOTS_TURNS && in_turn) {
        (four  ? dots_4_in_turn
         : two ? dots_2_in_turn
               : dots_1_in_turn)(q, k, k_stride, ahead, depth, factor, s, s_stride);
    } else {
        (four            ? dots_4
         : two           ? dots_2
         : ahead == NULL ? dots_1
                         : dots_1_far)(q, k, k_stride, ahead, depth, factor, s, s_stride);
    }
}
