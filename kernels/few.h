/// How few queries share what is loaded of K and V: what dots.inl and axpys.inl have in common.
#ifndef MHA_FEW_H
#define MHA_FEW_H

#include <stddef.h>

/// Queries that go together at most.
enum { FEW_TOGETHER = 4 };

/// Gets how many of `left` queries go together: 4, 2 or 1.
static inline size_t few_together(size_t left) {
    return left >= FEW_TOGETHER ? FEW_TOGETHER : left >= 2 ? 2 : 1;
}

#endif
