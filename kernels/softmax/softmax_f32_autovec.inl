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
#include "mha_kernel.h"
#include "softmax/softmax_rows.h"
#include "vec_autovec.h"

#define SOFTMAX_STRING_(x) #x
#define SOFTMAX_STRING(x) SOFTMAX_STRING_(x)

static void span_softmax(const float *x, float *y, size_t n) {
    const float reference = softmax_reference(vec_autovec_largest(x, n));
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < n; j++) {
        const float e = vec_autovec_exp(x[j] - reference);
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
        y[j] = vec_autovec_exp(x[j]);
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
    .step = VEC_AUTOVEC_LANES,
    .flags = MHA_FLAG_IN_PLACE,
    .exp_f32 = exp_f32,
};
