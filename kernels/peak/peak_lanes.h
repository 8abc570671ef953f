/// What the peak kernels of all ISAs share: how their lanes reach y, and how the compiler is kept
/// from seeing that they are all alike.
#ifndef MHA_PEAK_LANES_H
#define MHA_PEAK_LANES_H

#include <stddef.h>

#include "mha_kernel.h"

/// Gets `value` in such a way that the compiler takes every call's result for another number. It
/// would keep one accumulator for all of them, and fold a product by one, if it knew better.
static inline float peak_opaque(float value) {
    const volatile float hidden = value;
    return hidden;
}

/// Stores the kernel's `count` lanes to y, repeated in a cycle until MHA_PEAK_LANES are written.
static inline void peak_store_lanes(size_t count, const float *lanes, float *y) {
    size_t lane = 0;
    for (size_t i = 0; i < MHA_PEAK_LANES; i++) {
        y[i] = lanes[lane];
        lane = lane + 1 < count ? lane + 1 : 0;
    }
}

#endif
