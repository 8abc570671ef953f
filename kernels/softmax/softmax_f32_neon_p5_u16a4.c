/// softmax, f32, NEON (ARMv8-A).
///
/// Three passes over each span: the maximum; exp of the distance to it, and the sum; scaling by the
/// sum's reciprocal. exp is vec_neon_exp(): a polynomial of degree 5.
///
/// Error: 2.00 ULP of exp, n/16 + 7 additions of the sum in the longest chain, the reciprocal
/// and the last product; and, for a score at the distance |d| from the maximum, the rounding of
/// that distance, |d| * 2^-24 of the result. Registers: 4 vectors at a time through exp, 4
/// accumulators, 11 constants. Tail: up to 3 whole vectors, then loads and stores of single lanes.
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

/// Stores exp(x[0..4) - reference) to y and gets it.
static inline float32x4_t exp_vector(const float *x, float *y, float32x4_t reference) {
    const float32x4_t e = vec_neon_exp(vsubq_f32(vld1q_f32(x), reference));
    vst1q_f32(y, e);
    return e;
}

static void span_softmax(const float *x, float *y, size_t n) {
    const float32x4_t reference = vdupq_n_f32(softmax_reference(largest_of(x, n)));
    float32x4_t s0 = vdupq_n_f32(0.0f), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        s0 = vaddq_f32(s0, exp_vector(x + i, y + i, reference));
        s1 = vaddq_f32(s1, exp_vector(x + i + 4, y + i + 4, reference));
        s2 = vaddq_f32(s2, exp_vector(x + i + 8, y + i + 8, reference));
        s3 = vaddq_f32(s3, exp_vector(x + i + 12, y + i + 12, reference));
    }
    for (; i + LANES <= n; i += LANES) {
        s0 = vaddq_f32(s0, exp_vector(x + i, y + i, reference));
    }
    const float32x4_t v = vec_neon_load_tail(x + i, n - i, -INFINITY);
    const float32x4_t tail = vec_neon_exp(vsubq_f32(v, reference));
    s1 = vaddq_f32(s1, tail);

    const float sum = vaddvq_f32(vaddq_f32(vaddq_f32(s0, s1), vaddq_f32(s2, s3)));
    const float32x4_t factor = vdupq_n_f32(softmax_factor(sum));
    scale(y, i, factor);
    vec_neon_store_tail(y + i, vmulq_f32(tail, factor), n - i);
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        vst1q_f32(y + i, vec_neon_exp(vld1q_f32(x + i)));
    }
    vec_neon_store_tail(y + i, vec_neon_exp(vec_neon_load_tail(x + i, count - i, 0.0f)), count - i);
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
