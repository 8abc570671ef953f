/// Row mover of plain C, one element at a time.
#ifndef MHA_MOVE_SCALAR_H
#define MHA_MOVE_SCALAR_H

#include <stddef.h>

/// See move_rows_fn. No `restrict`: told that x and y do not overlap, compilers put a call of
/// memcpy in place of the loop, and libc's vectors are no scalar baseline.
__attribute__((always_inline)) static inline void move_scalar_rows(size_t rows, size_t cols,
                                                                   const float *x, size_t x_stride,
                                                                   float *y, size_t y_stride,
                                                                   const float *next) {
    (void)next;
    for (size_t r = 0; r < rows; r++) {
        // Unrolled, or where the linker happens to put the short loop decides by a factor of two.
#pragma GCC unroll 8
        for (size_t i = 0; i < cols; i++) {
            y[r * y_stride + i] = x[r * x_stride + i];
        }
    }
}

#endif
