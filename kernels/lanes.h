/// Rows computed element by element from rows that lie opposite: what embed, sinusoid, rope and
/// bias are made of. Written once over the vector of an ISA. Includers define LANES_VECTOR, one of
/// "lanes_avx2.h", "lanes_avx512.h" and "lanes_neon.h", and LANES_PAST_CACHES for results that
/// exceed the caches. The vector defines
///
///   lanes, LANES           a vector of floats and their number, a power of two <= LANES_LINE
///   lanes_load(p, n)       p[0 ... n) for n < LANES, and zeros; whole from LANES on. Reads no more
///   lanes_hold(v)          v, from a register: gcc 12 makes an operand in memory of each use
///   lanes_store(p, v, n)   the first n lanes, whole from LANES on
///   lanes_stream_line(p, v)  LANES_LINE elements past the caches, p 64-byte aligned
///   lanes_fence()          orders these before what follows, as plain stores always are
///   lanes_set, _add, _sub, _mul, _abs, lanes_fma (a * b + c), lanes_fnma (c - a * b)
///   lanes_index()          0, 1, 2, ...
///   lanes_load_twice(p, n) p[0], p[0], p[1], p[1], ...: n <= LANES / 2 elements, each twice
///   lanes_rotate(v, c, s)  pairs (a, b) of v to (a c - b s, b c + a s)
///
/// Tails: a row of at least one vector ends in one that overlaps the one before. It is computed
/// before anything is stored, so that a row may be computed in place; shorter rows are loaded and
/// stored in part. Both touch the row's own elements only. Past the caches, what a row has of a
/// line that it does not fill is held back until others complete it: struct lanes_out.
#ifndef MHA_LANES_H
#define MHA_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include LANES_VECTOR

/// Elements of the main loop: 4 vectors, enough for loads to be under way while others are stored.
enum { LANES_STEP = 4 * LANES };

/// Elements of a cache line, the unit of a streaming store.
enum { LANES_LINE = 16 };

/// Computes the elements [i, i + n) of a row, n <= LANES; `at` are their numbers as floats, exact
/// below 2^24. Reads nothing of the inputs that does not stand opposite.
typedef lanes lanes_fn(const void *inputs, size_t i, lanes at, size_t n);

/// The numbers of the elements from i on.
static inline lanes lanes_from(size_t i) {
    return lanes_add(lanes_set((float)i), lanes_index());
}

/// Computes the elements [from, to), the first of them at y. Always inlined, so that fn is no call
/// either.
__attribute__((always_inline)) static inline void lanes_span(lanes_fn *fn, const void *inputs,
                                                             size_t from, size_t to, float *y) {
    if (to - from < LANES) {
        if (from < to) {
            lanes_store(y, fn(inputs, from, lanes_from(from), to - from), to - from);
        }
        return;
    }
    lanes last = lanes_set(0);
    if ((to - from) % LANES != 0) {
        last = fn(inputs, to - LANES, lanes_from(to - LANES), LANES);
    }
    lanes at = lanes_from(from);
    size_t i = from;
    for (; to - i >= LANES_STEP; i += LANES_STEP) {
        const lanes v0 = fn(inputs, i, at, LANES);
        const lanes v1 = fn(inputs, i + LANES, lanes_add(at, lanes_set(LANES)), LANES);
        const lanes v2 =
            fn(inputs, i + (size_t)2 * LANES, lanes_add(at, lanes_set(2 * LANES)), LANES);
        const lanes v3 =
            fn(inputs, i + (size_t)3 * LANES, lanes_add(at, lanes_set(3 * LANES)), LANES);
        lanes_store(y + (i - from), v0, LANES);
        lanes_store(y + (i - from) + LANES, v1, LANES);
        lanes_store(y + (i - from) + (size_t)2 * LANES, v2, LANES);
        lanes_store(y + (i - from) + (size_t)3 * LANES, v3, LANES);
        at = lanes_add(at, lanes_set(LANES_STEP));
    }
    for (; to - i >= LANES; i += LANES) {
        lanes_store(y + (i - from), fn(inputs, i, at, LANES), LANES);
        at = lanes_add(at, lanes_set(LANES));
    }
    if (i < to) {
        lanes_store(y + (to - from) - LANES, last, LANES);
    }
}

/// What is held back of an item's results past the caches: the elements of a line that others are
/// to complete, be it of this row or of the next. Stored by itself it would be read from memory
/// first, and the streaming stores around it wait: bias took 1.1 to 2.1 times as long for rows of
/// 301 columns as for 304 (Zen 4).
struct lanes_out {
    float *at;    ///< Where they belong: the begin of a line.
    size_t held;  ///< Their number.
    float line[LANES_LINE];
};

// What the variants of a kernel differ in.
#ifdef LANES_PAST_CACHES
#define LANES_TAG "nt"
#define LANES_SUMMARY "streaming stores past the caches"

/// Stores what is held back.
static inline void lanes_flush(struct lanes_out *out) {
    memcpy(out->at, out->line, out->held * sizeof(*out->line));
    out->held = 0;
}

/// As lanes_span(), but past the caches: whole lines by streaming stores, what is before them by
/// plain ones, what is behind them held back. lanes_done() must follow before anyone may read y.
__attribute__((always_inline)) static inline void lanes_row(lanes_fn *fn, const void *inputs,
                                                            size_t from, size_t to, float *y,
                                                            struct lanes_out *out) {
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    const uintptr_t address = (uintptr_t)y;
    size_t head = address % sizeof(*y) != 0 ? to - from : (0 - address) / sizeof(*y) % LANES_LINE;
    float *first = y;
    if (out->held > 0 && out->at + out->held == y) {
        head = LANES_LINE - out->held;
        first = out->line + out->held;
    } else if (out->held > 0) {
        lanes_flush(out);
    }
    size_t i = from + (head < to - from ? head : to - from);
    lanes_span(fn, inputs, from, i, first);
    if (out->held > 0) {
        out->held += i - from;
        if (out->held < LANES_LINE) {
            return;
        }
        lanes line[LANES_LINE / LANES];
        for (size_t j = 0; j < LANES_LINE / LANES; j++) {
            line[j] = lanes_load(out->line + j * LANES, LANES);
        }
        lanes_stream_line(out->at, line);
        out->held = 0;
    }
    lanes at = lanes_from(i);
    for (; to - i >= LANES_LINE; i += LANES_LINE) {
        lanes line[LANES_LINE / LANES];
        for (size_t j = 0; j < LANES_LINE / LANES; j++) {
            line[j] = fn(inputs, i + j * LANES, at, LANES);
            at = lanes_add(at, lanes_set(LANES));
        }
        lanes_stream_line(y + (i - from), line);
    }
    if (i < to) {
        lanes_span(fn, inputs, i, to, out->line);
        out->at = y + (i - from);
        out->held = to - i;
    }
}

/// Ends an item.
static inline void lanes_done(struct lanes_out *out) {
    if (out->held > 0) {
        lanes_flush(out);
    }
    lanes_fence();
}
#else
#define LANES_TAG "u4"
#define LANES_SUMMARY "4 vectors at a time"

/// As lanes_span(): nothing is held back.
__attribute__((always_inline)) static inline void lanes_row(lanes_fn *fn, const void *inputs,
                                                            size_t from, size_t to, float *y,
                                                            struct lanes_out *out) {
    (void)out;
    lanes_span(fn, inputs, from, to, y);
}

/// Ends an item.
static inline void lanes_done(struct lanes_out *out) {
    (void)out;
}
#endif

#endif
