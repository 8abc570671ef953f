/// Dot products of a few rows, q, with the rows of a matrix, k, that is read once and where it is:
/// the scores of few queries. Includers define DOTS_TYPE, the type of k's elements, and include one
/// of dots_<isa>.h, which defines beyond lanes_<isa>.h
///
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

/// Sums at a time: as many independent chains as hide the latency of two multiply-adds a cycle.
enum { DOTS = 8 };

/// Rows of q that share what is loaded of k, at most.
enum { DOTS_TOGETHER = 4 };

/// Rows of k at a time for one row of q where k is far away: on Zen 3 eight at a time took longer.
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
/// s, s_stride apart, `keys` rows at a time, or with `in_turn` one after the other. The numbers of
/// rows and `in_turn` are constants where this is called; the rows are at most DOTS together.
/// Fetches as many rows from `ahead` on unless it is NULL: where queries share k or rows go in
/// turn, a line of them to each line of k: all of them at once took longer on Zen 3.
__attribute__((always_inline)) static inline void dots_of(const size_t queries, const size_t keys,
                                                          const bool in_turn, const float *const *q,
                                                          size_t count, const void *k,
                                                          size_t k_stride, const void *ahead,
                                                          size_t depth, float factor, float *s,
                                                          size_t s_stride) {
    const size_t stride = count == DOTS ? k_stride : 0;  // one: DOTS times the same
    const float *x[DOTS_TOGETHER];
#pragma GCC unroll 4
    for (size_t r = 0; r < queries; r++) {
        x[r] = q[r];
    }
    for (size_t first = 0; first < count; first += keys) {
        lanes sum[DOTS];
#pragma GCC unroll 8
        for (size_t t = 0; t < DOTS; t++) {
            sum[t] = lanes_set(0.0f);
        }
        const void *row = widen_at(DOTS_TYPE, k, first * stride);
        const void *next = widen_at(DOTS_TYPE, ahead != NULL ? ahead : k, first * stride);
        if (in_turn) {
#pragma GCC unroll 8
            for (size_t j = 0; j < keys; j++) {
                dots_along(queries, keys, 1, x, widen_at(DOTS_TYPE, row, j * stride), stride, true,
                           widen_at(DOTS_TYPE, next, j * stride), depth, sum + j);
            }
        } else {
            if (queries == 1 && ahead != NULL) {
                gemm_prefetch(DOTS_TYPE, keys, depth, next, stride);
            }
            dots_along(queries, keys, keys, x, row, stride, queries > 1, next, depth, sum);
        }
        float scores[DOTS];
        lanes_store_sums(scores, sum, factor);
#pragma GCC unroll 4
        for (size_t r = 0; r < queries; r++) {
            if (count == DOTS) {
                memcpy(s + r * s_stride + first, scores + r * keys, keys * sizeof(*s));
            } else {
                s[r * s_stride] = scores[r * keys];
            }
        }
    }
}

// One function for each number, not inlined, for its loop to have the registers for its addresses.
#define DOTS_FUNCTION(name, queries, keys, in_turn)                                                \
    __attribute__((noinline)) static void name(const float *const *q, size_t count, const void *k, \
                                               size_t k_stride, const void *ahead, size_t depth,   \
                                               float factor, float *s, size_t s_stride) {          \
        dots_of(queries, keys, in_turn, q, count, k, k_stride, ahead, depth, factor, s, s_stride); \
    }
DOTS_FUNCTION(dots_4, 4, DOTS / 4, false)
DOTS_FUNCTION(dots_2, 2, DOTS / 2, false)
DOTS_FUNCTION(dots_1, 1, DOTS, false)
DOTS_FUNCTION(dots_1_far, 1, DOTS_STREAMS, false)
DOTS_FUNCTION(dots_4_in_turn, 4, DOTS / 4, true)
DOTS_FUNCTION(dots_2_in_turn, 2, DOTS / 2, true)
DOTS_FUNCTION(dots_1_in_turn, 1, DOTS, true)
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
    if (DOTS_TURNS && in_turn) {
        (queries == DOTS_TOGETHER ? dots_4_in_turn
         : queries == 2           ? dots_2_in_turn
                        : dots_1_in_turn)(q, count, k, k_stride, ahead, depth, factor, s, s_stride);
    } else if (queries == DOTS_TOGETHER) {
        dots_4(q, count, k, k_stride, ahead, depth, factor, s, s_stride);
    } else if (queries == 2) {
        dots_2(q, count, k, k_stride, ahead, depth, factor, s, s_stride);
    } else if (ahead == NULL) {
        dots_1(q, count, k, k_stride, NULL, depth, factor, s, s_stride);
    } else {
        dots_1_far(q, count, k, k_stride, ahead, depth, factor, s, s_stride);
    }
}
