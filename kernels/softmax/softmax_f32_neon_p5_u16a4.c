/// softmax, f32, NEON (ARMv8-A).
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal. exp is a power of 2, vec_neon_exp2(): a polynomial of degree 5.
///
/// Error: 2.43 ULP of exp in exp_f32(), whose sum of two parts is rounded; 2.06 of the power in
/// run(), n/16 + 7 additions of the sum in the longest chain, the reciprocal and the last product;
/// and, for a score at the distance |d| from the maximum, the rounding of |d| log2(e) and of that
/// constant, 1.23 |d| 2^-24 of the result. Registers: 4 vectors at a time through exp, 4
/// accumulators, 10 constants. Tail: up to 3 whole vectors, then loads and stores of single lanes.
#include <math.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"
#include "vec_neon.h"

enum { LANES = 4, STEP = 4 * LANES };

/// Gets the largest of x[0..n), or NaN when one is NaN: the distances then are, too.
static inline float largest_of(const float *x, size_t n) {
    float32x4_t m0 = vdupq_n_f32(-INFINITY), m1 = m0, m2 = m0, m3 = m0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        m0 = vmaxq_f32(m0, vld1q_f32(x + i));
        m1 = vmaxq_f32(m1, vld1q_f32(x + i + 4));
        m2 = vmaxq_f32(m2, vld1q_f32(x + i + 8));
        m3 = vmaxq_f32(m3, vld1q_f32(x + i + 12));
    }
    for (; i + LANES <= n; i += LANES) {
        m0 = vmaxq_f32(m0, vld1q_f32(x + i));
    }
    m1 = vmaxq_f32(m1, vec_neon_load_tail(x + i, n - i, -INFINITY));
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(m0, m1), vmaxq_f32(m2, m3)));
}

static inline void scale(float *y, size_t n, float32x4_t factor) {
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        for (size_t j = i; j < i + STEP; j += LANES) {
            vst1q_f32(y + j, vmulq_f32(vld1q_f32(y + j), factor));
        }
    }
    for (; i < n; i += LANES) {
        vst1q_f32(y + i, vmulq_f32(vld1q_f32(y + i), factor));
    }
}

/// Gets the exponentials of a vector of scores; see struct softmax_exponent.
static inline float32x4_t exponential(float32x4_t x, bool far, float32x4_t from) {
    const float32x4_t log2_e = vdupq_n_f32(VEC_LOG2_E);
    return vec_neon_exp2(far ? vmulq_f32(vsubq_f32(x, from), log2_e) : vfmaq_f32(from, x, log2_e));
}

/// Stores the exponentials of x[0..4) to y and gets them.
static inline float32x4_t exp_vector(const float *x, float *y, bool far, float32x4_t from) {
    const float32x4_t e = exponential(vld1q_f32(x), far, from);
    vst1q_f32(y, e);
    return e;
}

/// Inlined with a constant `far`.
__attribute__((always_inline)) static inline void span_softmax_from(bool far, float32x4_t from,
                                                                    const float *x, float *y,
                                                                    size_t n) {
    float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        s0 = vaddq_f32(s0, exp_vector(x + i, y + i, far, from));
        s1 = vaddq_f32(s1, exp_vector(x + i + 4, y + i + 4, far, from));
        s2 = vaddq_f32(s2, exp_vector(x + i + 8, y + i + 8, far, from));
        s3 = vaddq_f32(s3, exp_vector(x + i + 12, y + i + 12, far, from));
    }
    for (; i + LANES <= n; i += LANES) {
        s0 = vaddq_f32(s0, exp_vector(x + i, y + i, far, from));
    }
    const float32x4_t v = vec_neon_load_tail(x + i, n - i, -INFINITY);
    const float32x4_t tail = exponential(v, far, from);
    s1 = vaddq_f32(s1, tail);

    const float sum = vaddvq_f32(vaddq_f32(vaddq_f32(s0, s1), vaddq_f32(s2, s3)));
    const float32x4_t factor = vdupq_n_f32(softmax_factor(sum));
    scale(y, i, factor);
    vec_neon_store_tail(y + i, vmulq_f32(tail, factor), n - i);
}

static void span_softmax(const float *x, float *y, size_t n) {
    const struct softmax_exponent exponent = softmax_exponent_of(largest_of(x, n));
    const float32x4_t from = vdupq_n_f32(exponent.from);
    if (exponent.far) {
        span_softmax_from(true, from, x, y, n);
    } else {
        span_softmax_from(false, from, x, y, n);
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

/// Gets exp(x), the power of 2 that the kernel computes of an exponent in two parts: what it is off
/// by is the power's own error, without the exponent's rounding, which grows with the distance.
static inline float32x4_t exp_of(float32x4_t x) {
    const float32x4_t log2_e = vdupq_n_f32(VEC_LOG2_E), rest = vdupq_n_f32(VEC_LOG2_E_REST);
    // Zero is reached before. A NaN stays one.
    const float32x4_t finite = vmaxq_f32(vdupq_n_f32(-150.0f), x);
    const float32x4_t exponent = vmulq_f32(finite, log2_e);
    const float32x4_t lost = vfmaq_f32(vnegq_f32(exponent), finite, log2_e);
    const float32x4_t below = vfmaq_f32(lost, finite, rest);
    return vec_neon_power(exponent, &below);
}

static void exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vst1q_f32(y + i, exp_of(vld1q_f32(x + i)));
    }
    vec_neon_store_tail(y + i, exp_of(vec_neon_load_tail(x + i, count - i, 0.0f)), count - i);
}

const struct mha_kernel softmax_f32_neon_p5_u16a4 = {
    .name = "softmax_f32_neon_p5_u16a4",
    .op = "softmax",
    .dtype = "f32",
    .isa = "neon",
    .tag = "p5_u16a4",
    .summary = "three passes; exp by a polynomial of degree 5",
    .run = {.softmax = run},
    .step = STEP,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
