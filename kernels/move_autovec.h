/// Row mover of plain C for the vectoriser.
#ifndef MHA_MOVE_AUTOVEC_H
#define MHA_MOVE_AUTOVEC_H

#include <stddef.h>

/// Elements of the inner loop: 8 vectors of AVX2, a count that compilers unroll in full.
enum { MOVE_AUTOVEC_TILE = 64 };

/// See move_row_fn. `omp simd` says that the iterations are independent, in place of `restrict`:
/// told that x and y do not overlap, compilers put a call of memcpy in place of the loop, and
/// libc's hand-written vectors are not what the vectoriser is measured by.
__attribute__((always_inline)) static inline void move_autovec_row(size_t n, const float *x,
                                                                   float *y) {
    size_t c = 0;
    for (; n - c >= MOVE_AUTOVEC_TILE; c += MOVE_AUTOVEC_TILE) {
#pragma omp simd
        for (size_t i = 0; i < MOVE_AUTOVEC_TILE; i++) {
            y[c + i] = x[c + i];
        }
    }
#pragma omp simd
    for (size_t i = c; i < n; i++) {
        y[i] = x[i];
    }
}

#endif
