/// Row movers of the AVX-512 level: what its concat, split and copy are made of.
///
/// Tails: the last vector of a row that is at least one vector long starts early and overlaps the
/// one before, since the same elements are stored twice with the same value; shorter rows go under
/// a mask. Both touch the row's own elements only.
#ifndef MHA_MOVE_AVX512_H
#define MHA_MOVE_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "vec_avx512.h"

/// Elements of the main loop: 4 vectors, the head_dim of most models.
enum { MOVE_AVX512_STEP = 64 };

/// Elements of a vector and of a cache line, the unit of a streaming store.
enum { MOVE_AVX512_LINE = 16 };

/// Moves the first `n` < 16 elements.
static inline void move_avx512_part(size_t n, const float *x, float *y) {
    const __mmask16 mask = vec_avx512_mask(n);
    _mm512_mask_storeu_ps(y, mask, _mm512_maskz_loadu_ps(mask, x));
}

/// See move_row_fn.
__attribute__((always_inline)) static inline void move_avx512_row(size_t n, const float *x,
                                                                  float *y) {
    if (n < 16) {
        move_avx512_part(n, x, y);
        return;
    }
    size_t i = 0;
    for (; n - i >= MOVE_AVX512_STEP; i += MOVE_AVX512_STEP) {
        const __m512 v0 = _mm512_loadu_ps(x + i);
        const __m512 v1 = _mm512_loadu_ps(x + i + 16);
        const __m512 v2 = _mm512_loadu_ps(x + i + 32);
        const __m512 v3 = _mm512_loadu_ps(x + i + 48);
        _mm512_storeu_ps(y + i, v0);
        _mm512_storeu_ps(y + i + 16, v1);
        _mm512_storeu_ps(y + i + 32, v2);
        _mm512_storeu_ps(y + i + 48, v3);
    }
    for (; n - i >= 16; i += 16) {
        _mm512_storeu_ps(y + i, _mm512_loadu_ps(x + i));
    }
    if (i < n) {
        _mm512_storeu_ps(y + n - 16, _mm512_loadu_ps(x + n - 16));
    }
}

/// Copies a row past the caches: whole lines of y by streaming stores, its ends by masked ones.
/// move_avx512_fence() must follow before anyone else may read y.
__attribute__((always_inline)) static inline void move_avx512_row_nt(size_t n, const float *x,
                                                                     float *y) {
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % MOVE_AVX512_LINE;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    if (n < head + MOVE_AVX512_LINE || (uintptr_t)y % sizeof(float) != 0) {
        move_avx512_row(n, x, y);
        return;
    }
    if (head > 0) {
        move_avx512_part(head, x, y);
    }
    size_t i = head;
    for (; n - i >= MOVE_AVX512_LINE; i += MOVE_AVX512_LINE) {
        _mm512_stream_ps(y + i, _mm512_loadu_ps(x + i));
    }
    if (i < n) {
        move_avx512_part(n - i, x + i, y + i);
    }
}

/// Orders streaming stores before everything that follows, as plain stores always are.
static inline void move_avx512_fence(void) {
    _mm_sfence();
}

#endif
