/// What dots.inl takes of the NEON level.
#ifndef MHA_DOTS_NEON_H
#define MHA_DOTS_NEON_H

#include "lanes_neon.h"
#include "widen_neon.h"

/// As many as chains.
enum { DOTS = 8 };

/// See dots_avx2.h; not measured.
#define DOTS_FETCH_TWICE false

static inline void lanes_store_sums(float *p, const lanes v[DOTS], float factor) {
    const lanes low = vpaddq_f32(vpaddq_f32(v[0], v[1]), vpaddq_f32(v[2], v[3]));
    const lanes high = vpaddq_f32(vpaddq_f32(v[4], v[5]), vpaddq_f32(v[6], v[7]));
    vst1q_f32(p, vmulq_n_f32(low, factor));
    vst1q_f32(p + 4, vmulq_n_f32(high, factor));
}

/// Loads the first n elements of p from `index` on, all from LANES on, as floats; the other lanes
/// are zeros. Reads nothing behind them.
static inline lanes lanes_widen(const enum widen_type type, const void *p, size_t index, size_t n) {
    return n >= LANES ? widen_neon_load(type, p, index) : widen_neon_tail(type, p, index, n);
}

#endif
