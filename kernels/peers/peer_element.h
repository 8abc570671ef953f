/// The type of a peer's operands: float or, with PEER_BF16, which includers define, bf16.
#ifndef MHA_PEER_ELEMENT_H
#define MHA_PEER_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "widen.h"

#ifdef PEER_BF16
typedef uint16_t peer_element;
enum { PEER_IS_BF16 = true };

static inline float peer_float(peer_element x) {
    return widen_bf16(x);
}
#else
typedef float peer_element;
enum { PEER_IS_BF16 = false };

static inline float peer_float(peer_element x) {
    return x;
}
#endif

/// Steps of depth that a library multiplies together. Of an odd number of bf16 oneDNN 2.6 takes
/// what lies behind the last one of a row along, times zero, which is a NaN where that is infinite
/// (seen with vdpbf16ps; no reference says that it may).
enum { PEER_TOGETHER = PEER_IS_BF16 ? 2 : 1 };

/// Tells whether a product of this depth is right whatever lies behind its rows; when not, *why
/// (unless `why` is NULL) tells so.
static inline bool peer_takes_depth(size_t depth, const char **why) {
    if (depth % PEER_TOGETHER == 0) {
        return true;
    }
    if (why) {
        *why = "the library multiplies what lies behind an odd number of bf16 by zero";
    }
    return false;
}

#endif
