/// Row mover of plain C, one element at a time.
#ifndef MHA_MOVE_SCALAR_H
#define MHA_MOVE_SCALAR_H

#include <stddef.h>

/// See move_row_fn. No `restrict`: told that x and y do not overlap, compilers put a call of memcpy
/// in place of the loop, and libc's vectors are no scalar baseline.
__attribute__((always_inline)) static inline void move_scalar_row(size_t n, const float *x,
                                                                  float *y) {
    // Unrolled, or where the linker happens to put the short loop decides by a factor of two.
#pragma GCC unroll 8
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i];
    }
}

#endif
