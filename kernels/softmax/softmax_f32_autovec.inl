/// softmax, f32: C written for the vectoriser, compiled once per ISA level by the files that define
/// SOFTMAX_AUTOVEC_ISA (the word) and SOFTMAX_AUTOVEC_NAME (the symbol) and include this one. It is
/// what a good programmer gets without intrinsics.
///
/// Three passes over each span, each a loop that the compiler turns into vectors of its own choice.
/// exp is range reduction in two steps and a polynomial of degree 5. Tails are the compiler's.
///
/// Error: 2.00 ULP of exp where the compiler fuses multiplications and additions as it may (every
/// f32 tried), the additions of the sum in an order of the compiler's choice, the reciprocal and
/// the last product; and, for a score at the distance |d| from the maximum, the rounding of that
/// distance, |d| * 2^-24 of the result.
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

#define SOFTMAX_STRING_(x) #x
#define SOFTMAX_STRING(x) SOFTMAX_STRING_(x)

/// Partial maxima of a span. A single maximum over floats is not one that every compiler reorders,
/// not even under omp simd reduction; independent ones are lanes as they stand.
enum { LANES = 32 };

static inline float larger(float a, float b) {
    return a > b ? a : b;  // b where a is NaN: a NaN never becomes the maximum
}

/// exp(d) for d <= 0, -inf or NaN: 2^n * p(r), d = n ln2 + r, |r| <= ln2/2. 0 below 2^-126.
static inline float exp_p5(float d) {
    // 1.5 * 2^23 rounds to an integer in the low mantissa bits; 127 is the bias of the exponent.
    const float magic = 0x1.8000fep+23f;
    const float t = d * 0x1.715476p+0f + magic;  // 1 / ln 2
    const float n = t - magic;
    // ln2 in two parts: n * ln2 to 2^-53.
    float r = d - n * 0x1.62e430p-1f;
    r = r + n * 0x1.05c610p-29f;
    // Minimax in the relative error over +-ln2/2 (Remez, 1.54 * 2^-24); the constant term is 1.
    float p = 0x1.0fa7d8p-7f;
    p = p * r + 0x1.573ad0p-5f;
    p = p * r + 0x1.555a6ep-3f;
    p = p * r + 0x1.fffdc4p-2f;
    p = p * r + 0x1.fffff6p-1f;
    uint32_t bits;
    memcpy(&bits, &t, sizeof(bits));
    bits <<= 23;
    float scale;
    memcpy(&scale, &bits, sizeof(scale));
    const float e = scale + (scale * r) * p;
    return d < -0x1.5d589ep+6f ? 0.0f : e;  // ln 2^-126; false for a NaN, which stays one
}

static void span_softmax(const float *x, float *y, size_t n) {
    float top[LANES];
    for (size_t j = 0; j < LANES; j++) {
        top[j] = -INFINITY;
    }
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma omp simd
        for (size_t j = 0; j < LANES; j++) {
            top[j] = larger(x[i + j], top[j]);
        }
    }
#pragma omp simd
    for (size_t j = 0; j < n - i; j++) {
        top[j] = larger(x[i + j], top[j]);
    }
    for (size_t half = LANES / 2; half > 0; half /= 2) {
        for (size_t j = 0; j < half; j++) {
            top[j] = larger(top[half + j], top[j]);
        }
    }

    const float reference = softmax_reference(top[0]);
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        const float e = exp_p5(x[j] - reference);
        y[j] = e;
        sum += e;
    }

    const float factor = softmax_factor(sum);
#pragma omp simd
    for (size_t j = 0; j < n; j++) {
        y[j] *= factor;
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
#pragma omp simd
    for (size_t j = 0; j < count; j++) {
        y[j] = exp_p5(x[j]);
    }
}

const struct mha_kernel SOFTMAX_AUTOVEC_NAME = {
    .name = SOFTMAX_STRING(SOFTMAX_AUTOVEC_NAME),
    .op = "softmax",
    .dtype = "f32",
    .isa = SOFTMAX_AUTOVEC_ISA,
    .tag = "autovec",
    .summary = "C for the vectoriser: three passes, exp by a polynomial of degree 5",
    .run = {.softmax = run},
    .step = LANES,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
