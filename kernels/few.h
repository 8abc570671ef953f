/// How few queries share what is loaded of K and V: what dots.inl and axpys.inl have in common.
#ifndef MHA_FEW_H
#define MHA_FEW_H

#include <stddef.h>

/// Bytes of K or V of a head up to which one query does not fetch it ahead. On Zen 5, where L2 does
/// not hold all heads together, fetching 64 to 256 KiB of a head took up to 51 % off qk and up to
/// 27 % off pv; where it does, qk took 2 % less to 9 % more. On Zen 3 up to 256 KiB cost more than
/// they saved.
#define FEW_NEAR_BYTES ((size_t)65536)

/// Queries that go together at most.
enum { FEW_TOGETHER = 4 };

/// Gets how many of `left` queries go together: 4, 2 or 1.
static inline size_t few_together(size_t left) {
    return left >= FEW_TOGETHER ? FEW_TOGETHER : left >= 2 ? 2 : 1;
}

#endif
