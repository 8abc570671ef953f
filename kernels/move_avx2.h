/// Row movers of the AVX2 level: what its concat, split and copy are made of.
///
/// Tails: the last vector of a row that is at least one vector long starts early and overlaps the
/// one before, since the same elements are stored twice with the same value; shorter rows are moved
/// by halves. Both touch the row's own elements only. Not by vmaskmov: its stores are microcoded on
/// AMD's cores and took three times as long for rows of 3 and 7 elements (Zen 3).
#ifndef MHA_MOVE_AVX2_H
#define MHA_MOVE_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/// Elements of the main loop: 8 vectors, loaded before they are stored so that neither waits.
enum { MOVE_AVX2_STEP = 64 };

/// Elements of a cache line, the unit of a streaming store: a line that is filled in part leaves
/// the write-combining buffer as several slow partial writes.
enum { MOVE_AVX2_LINE = 16 };

/// See move_row_fn.
__attribute__((always_inline)) static inline void move_avx2_row(size_t n, const float *x,
                                                                float *y) {
    if (n >= 8) {
        size_t i = 0;
        for (; n - i >= MOVE_AVX2_STEP; i += MOVE_AVX2_STEP) {
            const __m256 v0 = _mm256_loadu_ps(x + i);
            const __m256 v1 = _mm256_loadu_ps(x + i + 8);
            const __m256 v2 = _mm256_loadu_ps(x + i + 16);
            const __m256 v3 = _mm256_loadu_ps(x + i + 24);
            const __m256 v4 = _mm256_loadu_ps(x + i + 32);
            const __m256 v5 = _mm256_loadu_ps(x + i + 40);
            const __m256 v6 = _mm256_loadu_ps(x + i + 48);
            const __m256 v7 = _mm256_loadu_ps(x + i + 56);
            _mm256_storeu_ps(y + i, v0);
            _mm256_storeu_ps(y + i + 8, v1);
            _mm256_storeu_ps(y + i + 16, v2);
            _mm256_storeu_ps(y + i + 24, v3);
            _mm256_storeu_ps(y + i + 32, v4);
            _mm256_storeu_ps(y + i + 40, v5);
            _mm256_storeu_ps(y + i + 48, v6);
            _mm256_storeu_ps(y + i + 56, v7);
        }
        for (; n - i >= 8; i += 8) {
            _mm256_storeu_ps(y + i, _mm256_loadu_ps(x + i));
        }
        if (i < n) {
            _mm256_storeu_ps(y + n - 8, _mm256_loadu_ps(x + n - 8));
        }
    } else if (n >= 4) {
        const __m128 first = _mm_loadu_ps(x);
        const __m128 last = _mm_loadu_ps(x + n - 4);
        _mm_storeu_ps(y, first);
        _mm_storeu_ps(y + n - 4, last);
    } else {
        if (n > 0) {
            y[0] = x[0];
        }
        if (n > 1) {
            y[1] = x[1];
        }
        if (n > 2) {
            y[2] = x[2];
        }
    }
}

/// Copies a row past the caches: whole lines of y by streaming stores, its ends by plain ones; a
/// row that holds no whole line is stored plainly. move_avx2_fence() must follow before anyone else
/// may read y.
__attribute__((always_inline)) static inline void move_avx2_row_nt(size_t n, const float *x,
                                                                   float *y) {
    const size_t head = (0 - (uintptr_t)y) / sizeof(float) % MOVE_AVX2_LINE;
    // y may lie between two elements' addresses; then no store of it is ever aligned.
    if (n < head + MOVE_AVX2_LINE || (uintptr_t)y % sizeof(float) != 0) {
        move_avx2_row(n, x, y);
        return;
    }
    if (head > 0) {
        move_avx2_row(head, x, y);
    }
    size_t i = head;
    for (; n - i >= MOVE_AVX2_LINE; i += MOVE_AVX2_LINE) {
        const __m256 v0 = _mm256_loadu_ps(x + i);
        const __m256 v1 = _mm256_loadu_ps(x + i + 8);
        _mm256_stream_ps(y + i, v0);
        _mm256_stream_ps(y + i + 8, v1);
    }
    if (i < n) {
        move_avx2_row(n - i, x + i, y + i);
    }
}

/// Orders streaming stores before everything that follows, as plain stores always are.
static inline void move_avx2_fence(void) {
    _mm_sfence();
}

#endif
