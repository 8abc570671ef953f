/// Row mover of plain C for the vectoriser.
#ifndef MHA_MOVE_AUTOVEC_H
#define MHA_MOVE_AUTOVEC_H

#include <stddef.h>

/// Elements of the inner loop: 8 vectors of AVX2, a count that compilers unroll in full.
enum { MOVE_AUTOVEC_TILE = 64 };

/// See move_rows_fn. `omp simd` says that the iterations are independent, in place of `restrict`:
/// told that x and y do not overlap, compilers put a call of memcpy in place of the loop, and
/// libc's hand-written vectors are not what the vectoriser is measured by.
__attribute__((always_inline)) static inline void move_autovec_rows(size_t rows, size_t cols,
                                                                    const float *x, size_t x_stride,
                                                                    float *y, size_t y_stride,
                                                                    const float *next) {
    (void)next;
    for (size_t r = 0; r < rows; r++) {
        const float *x_row = x + r * x_stride;
        float *y_row = y + r * y_stride;
        size_t c = 0;
        for (; cols - c >= MOVE_AUTOVEC_TILE; c += MOVE_AUTOVEC_TILE) {
#pragma omp simd
            for (size_t i = 0; i < MOVE_AUTOVEC_TILE; i++) {
                y_row[c + i] = x_row[c + i];
            }
        }
#pragma omp simd
        for (size_t i = c; i < cols; i++) {
            y_row[i] = x_row[i];
        }
    }
}

#endif
