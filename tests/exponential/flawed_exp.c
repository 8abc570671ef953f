// A softmax whose exponential is wrong in one way, chosen by -DFLAW=<number>; see finds.sh. The run
// function is right throughout: only the walk over the floats can tell.
#include <math.h>
#include <mha_kernel.h>
#include <stdlib.h>
#include <string.h>

enum flaw { NONE, ONE_FLOAT, DRIFT, BIG_FLUSH, MINUS_INF, NOT_A_NUMBER, OVERRUN, UNWRITTEN, CRASH };

static float one(float x) {
    const float y = expf(x);
    switch (FLAW) {
        case ONE_FLOAT:  // a bad entry of a table, for a single float
            return x == -0x1.234568p+3f ? y * 1.000001f : y;
        case DRIFT:  // six units, far out
            return x < -20.0f ? y * (1.0f + 6 * 0x1p-23f) : y;
        case BIG_FLUSH:  // flushes results that are normal
            return x < -80.0f ? 0.0f : y;
        case MINUS_INF:
            return x == -INFINITY ? 1e-45f : y;
        case NOT_A_NUMBER:
            return isnan(x) ? 0.0f : y;
        case CRASH:
            if (x < -50.0f) {
                abort();
            }
            return y;
        default:
            return y;
    }
}

static void exp_f32(size_t count, const float *x, float *y) {
    for (size_t i = 0; i < count; i++) {
        if (FLAW == UNWRITTEN && i == count - 1 && count % 2 == 1) {
            break;
        }
        y[i] = one(x[i]);
    }
    // 4093 is the length of a long call; a short one may have no room behind it.
    if (FLAW == OVERRUN && count > 1000) {
        y[count] = 0.0f;
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
        memset(y, 0, a->cols * sizeof(*y));
        for (size_t c = seen.begin; c < seen.end; c++) {
            y[c] = expf(x[c] - reference);
            sum += y[c];
        }
        for (size_t c = seen.begin; c < seen.end; c++) {
            y[c] = sum == 0.0f ? 0.0f : y[c] / sum;
        }
    }
}

static const struct mha_kernel kernel = {.name = "softmax_f32_scalar_flawed",
                                         .op = "softmax",
                                         .dtype = "f32",
                                         .isa = "scalar",
                                         .tag = "flawed",
                                         .run = {.softmax = softmax},
                                         .exp_f32 = exp_f32};
static const struct mha_library_entry entries[] = {{&kernel, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "flawed", "1", 1, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
