/// softmax, f32, plain C: the baseline that everything else is held against.
///
/// Three passes over each span with the C library's expf: maximum; exp of the distance to it, and
/// the sum; scaling. One element at a time: no tail.
///
/// Error: 0.51 ULP of exp (glibc 2.36's expf, every f32 tried), n - 1 additions of the sum, the
/// reciprocal and the last product; and, for a score at the distance |d| from the maximum, the
/// rounding of that distance, |d| * 2^-24 of the result.
#include <math.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

static void span_softmax(const float *x, float *y, size_t n) {
    float largest = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (x[i] > largest) {  // false for a NaN, which shows in the sum
            largest = x[i];
        }
    }
    const float reference = softmax_reference(largest);
    float sum = 0.0f;
    for (size_t i = 0; i < n; i++) {
        y[i] = expf(x[i] - reference);
        sum += y[i];
    }
    const float factor = softmax_factor(sum);
    for (size_t i = 0; i < n; i++) {
        y[i] *= factor;
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    softmax_rows(args, span_softmax);
}

static void exp_f32(size_t count, const float *x, float *y) {
    for (size_t i = 0; i < count; i++) {
        y[i] = expf(x[i]);
    }
}

const struct mha_kernel softmax_f32_scalar_libm = {
    .name = "softmax_f32_scalar_libm",
    .op = "softmax",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "libm",
    .summary = "plain C, three passes, expf of the C library",
    .run = {.softmax = run},
    .step = 1,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
