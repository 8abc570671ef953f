// A kernel of one's own: softmax in plain C, as a plug-in of mhabench.
//   cc -O3 -shared -fPIC -I kernels tests/plugin/my_softmax.c -o my_softmax.so -lm
//   ./mhabench check --plugin ./my_softmax.so --kernel '*_mine'
#include <math.h>
#include <mha_kernel.h>

#ifdef BUG
enum { FORGOTTEN = 1 };  // what `check` is for: -DBUG leaves the last column out
#else
enum { FORGOTTEN = 0 };
#endif

static void my_softmax(const struct mha_softmax_args *a, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < a->rows; r++) {
        const float *x = (const float *)a->x + r * a->x_stride;
        float *y = a->y + r * a->y_stride;
        const struct mha_span seen = mha_row_span(&a->mask, a->first_row + r);
        float largest = -INFINITY, sum = 0.0f;
        for (size_t c = seen.begin; c < seen.end; c++) {
            largest = x[c] > largest ? x[c] : largest;
        }
        for (size_t c = 0; c + FORGOTTEN < a->cols; c++) {
            const bool visible = c >= seen.begin && c < seen.end && x[c] != -INFINITY;
            y[c] = visible ? expf(x[c] - largest) : 0.0f;
            sum += y[c];
        }
        for (size_t c = seen.begin; c + FORGOTTEN < seen.end; c++) {
            y[c] = sum == 0.0f ? 0.0f : y[c] / sum;
        }
    }
}

static const struct mha_kernel mine = {
    .name = "softmax_f32_scalar_mine",
    .op = "softmax",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "mine",
    .summary = "my first kernel",
    .run = {.softmax = my_softmax},
};
static const struct mha_library_entry entries[] = {{&mine, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "mine", "1.0", 1, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
