/// Lines fetched into a cache while others are computed with.
///
/// They are to be asked for in the order in which they lie in memory: a hardware prefetcher follows
/// that and runs far ahead. Where lines of several rows were asked for by turns it did not, and
/// what was left are the few lines that L1 awaits at a time: rows from memory came at a third to a
/// half of the rate (Zen 4).
///
/// What is streamed through is fetched twice where something else is read beside it: from far away
/// into L2, where nothing waits for it, and from there soon before its turn. On Zen 4, rope past
/// the caches, which reads its angles from L2 meanwhile, took 34 to 46 % less time so; into L2
/// alone 3 to 20 %, into L1 alone 15 and 20 %.
#ifndef MHA_FETCH_H
#define MHA_FETCH_H

#include <stddef.h>

/// Bytes of a cache line.
#define FETCH_LINE_BYTES ((size_t)64)

/// Bytes between what is computed and what is fetched, far and soon. Twice as far took as long, and
/// half as soon up to 10 % longer (Zen 4).
#define FETCH_FAR_BYTES ((size_t)16384)
#define FETCH_SOON_BYTES ((size_t)4096)

/// The cache: L1 for what is read next, L2 for what is read later.
enum fetch_into { FETCH_INTO_L1, FETCH_INTO_L2 };

/// Fetches `lines` lines, the first of which holds `at`, and returns the address behind them.
/// Inlined early, as whatever does nothing else must be: gcc takes a function of prefetches alone
/// for one without effect and drops its calls.
__attribute__((always_inline)) static inline const char *fetch_lines(const enum fetch_into into,
                                                                     const size_t lines,
                                                                     const char *at) {
#pragma GCC unroll 16
    for (size_t l = 0; l < lines; l++) {
        if (into == FETCH_INTO_L1) {
            __builtin_prefetch(at, 0, 3);
        } else {
            __builtin_prefetch(at, 0, 2);
        }
        at += FETCH_LINE_BYTES;
        // Keeps the order, which gcc 12 changes to 0, 2, 1, 3: 6 to 15 % longer beyond L2.
        __asm__("" : "+r"(at));
    }
    return at;
}

/// Fetches the lines that `bytes` fill, the first of which holds `at`: the last one of what begins
/// amid a line may be left out. There need be no array.
__attribute__((always_inline)) static inline void fetch_bytes(const enum fetch_into into,
                                                              size_t bytes, const void *at) {
    fetch_lines(into, (bytes + FETCH_LINE_BYTES - 1) / FETCH_LINE_BYTES, at);
}

#endif
