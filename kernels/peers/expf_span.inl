/// The softmax of one span on a vector library's expf: what somebody writes who takes the
/// exponential from a library. Includers define PEER_EXP(v), the library's function of one vector.
///
/// Three passes, as our kernels make them: the maximum; exp of the distance to it, and the sum;
/// scaling by the sum's reciprocal. Across a call no vector register survives, so that the second
/// pass has one vector under way and its sum in memory.
///
/// Error: that of the library's expf, n / LANES + 5 additions of the sum in the longest chain, the
/// reciprocal and the last product; and, for a score at the distance |d| from the maximum, the
/// rounding of that distance, |d| * 2^-24 of the result. Tail: masked; its lanes beyond the span
/// count as nothing.
#include <math.h>

#include "softmax/softmax_rows.h"

#ifdef __AVX512F__
#include "lanes_avx512.h"
#include "vec_avx512.h"

static inline lanes larger(lanes v, lanes than) {
    return _mm512_max_ps(v, than);
}

static inline float largest_lane(lanes v) {
    return vec_avx512_reduce_max(v);
}

static inline float sum_of_lanes(lanes v) {
    return vec_avx512_reduce_add(v);
}

/// v in the first n lanes, `fill` in the others.
static inline lanes first_lanes(lanes v, size_t n, lanes fill) {
    return _mm512_mask_blend_ps(vec_avx512_mask(n), fill, v);
}
#else
#include "lanes_avx2.h"
#include "vec_avx2.h"

static inline lanes larger(lanes v, lanes than) {
    return _mm256_max_ps(v, than);
}

static inline float largest_lane(lanes v) {
    return vec_avx2_reduce_max(v);
}

static inline float sum_of_lanes(lanes v) {
    return vec_avx2_reduce_add(v);
}

/// v in the first n lanes, `fill` in the others.
static inline lanes first_lanes(lanes v, size_t n, lanes fill) {
    return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(vec_avx2_mask(n)));
}
#endif

enum { STEP = 4 * LANES };

/// Gets the largest of x[0..n), NaN left out; -inf when there is none.
static inline float largest_of(const float *x, size_t n) {
    const lanes lowest = lanes_set(-INFINITY);
    lanes m0 = lowest, m1 = lowest, m2 = lowest, m3 = lowest;
    size_t i = 0;
    // The instruction gives its second operand when either is NaN: none of these becomes one.
    for (; i + STEP <= n; i += STEP) {
        m0 = larger(lanes_load(x + i, LANES), m0);
        m1 = larger(lanes_load(x + i + LANES, LANES), m1);
        m2 = larger(lanes_load(x + i + 2 * LANES, LANES), m2);
        m3 = larger(lanes_load(x + i + 3 * LANES, LANES), m3);
    }
    for (; i + LANES <= n; i += LANES) {
        m0 = larger(lanes_load(x + i, LANES), m0);
    }
    if (i < n) {
        m1 = larger(first_lanes(lanes_load(x + i, n - i), n - i, lowest), m1);
    }
    return largest_lane(larger(larger(m0, m1), larger(m2, m3)));
}

static void span_softmax(const float *x, float *y, size_t n) {
    const lanes reference = lanes_set(softmax_reference(largest_of(x, n)));
    lanes sum = lanes_set(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const lanes e = PEER_EXP(lanes_sub(lanes_load(x + i, LANES), reference));
        lanes_store(y + i, e, LANES);
        sum = lanes_add(sum, e);
    }
    if (i < n) {
        const lanes d = lanes_sub(lanes_load(x + i, n - i), reference);
        const lanes e = PEER_EXP(first_lanes(d, n - i, lanes_set(-INFINITY)));
        lanes_store(y + i, e, n - i);
        sum = lanes_add(sum, e);
    }
    const lanes factor = lanes_set(softmax_factor(sum_of_lanes(sum)));
    for (i = 0; i + STEP <= n; i += STEP) {
        for (size_t j = i; j < i + STEP; j += LANES) {
            lanes_store(y + j, lanes_mul(lanes_load(y + j, LANES), factor), LANES);
        }
    }
    for (; i < n; i += LANES) {
        lanes_store(y + i, lanes_mul(lanes_load(y + i, n - i), factor), n - i);
    }
}
