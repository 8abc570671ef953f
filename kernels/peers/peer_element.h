/// The type of a peer's operands: float or, with PEER_BF16, which includers define, bf16.
#ifndef MHA_PEER_ELEMENT_H
#define MHA_PEER_ELEMENT_H

#include <stdbool.h>
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

#endif
