// softmax over SLEEF's vector exponential, as a plug-in: someone else's code behind the descriptor.
//   cc -O3 -mavx2 -mfma -shared -fPIC -I kernels tests/plugin/softmax_sleef.c
//      -o softmax_sleef.so -lsleef
#include <immintrin.h>
#include <math.h>
#include <mha_kernel.h>
#include <sleef.h>
#include <string.h>

// SLEEF's own claim is 1 ULP; _u10 names it.
static void exp_f32(size_t count, const float *x, float *y) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(y + i, Sleef_expf8_u10avx2(_mm256_loadu_ps(x + i)));
    }
    if (i < count) {
        float tail[8] = {0};
        memcpy(tail, x + i, (count - i) * sizeof(*x));
        _mm256_storeu_ps(tail, Sleef_expf8_u10avx2(_mm256_loadu_ps(tail)));
        memcpy(y + i, tail, (count - i) * sizeof(*y));
    }
}

static void softmax(const struct mha_softmax_args *a, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < a->rows; r++) {
        const float *x = (const float *)a->x + r * a->x_stride;
        float *y = a->y + r * a->y_stride;
        const struct mha_span seen = mha_row_span(&a->mask, a->first_row + r);
        float largest = -INFINITY, sum = 0.0f;
        for (size_t c = seen.begin; c < seen.end; c++) {
            largest = x[c] > largest ? x[c] : largest;
        }
        const float reference = largest == -INFINITY ? 0.0f : largest;
        for (size_t c = seen.begin; c < seen.end; c++) {
            y[c] = x[c] - reference;
        }
        // In blocks, since exp_f32() does not work in place.
        for (size_t c = seen.begin; c < seen.end; c += 256) {
            float block[256];
            const size_t n = seen.end - c < 256 ? seen.end - c : 256;
            exp_f32(n, y + c, block);
            memcpy(y + c, block, n * sizeof(*y));
            for (size_t i = 0; i < n; i++) {
                sum += block[i];
            }
        }
        const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
        for (size_t c = 0; c < a->cols; c++) {
            y[c] = c >= seen.begin && c < seen.end ? y[c] * factor : 0.0f;
        }
    }
}

static const struct mha_kernel kernel = {
    .name = "softmax_f32_avx2_sleef_plugged",
    .op = "softmax",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "sleef_plugged",
    .summary = "Sleef_expf8_u10avx2 in three passes",
    .run = {.softmax = softmax},
    .flags = MHA_FLAG_PEER,
    .exp_f32 = exp_f32,
};
static const struct mha_library_entry entries[] = {{&kernel, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "SLEEF", "3.5", 1, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
