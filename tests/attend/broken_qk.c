// qk, right or with one of several faults, which kernels.sh picks.
#include <mha_kernel.h>
#include <stdlib.h>

static void qk(const struct mha_qk_args *a, void *workspace) {
    (void)workspace;
#if defined(CRASHES)
    abort();
#elif defined(HANGS)
    for (volatile int forever = 1; forever;) {
    }
#elif defined(SILENT)
    return;
#endif
    for (size_t h = 0; h < a->heads; h++) {
        for (size_t r = 0; r < a->rows; r++) {
            const float *q = (const float *)a->q + h * a->q_head_stride + r * a->q_stride;
            for (size_t j = 0; j < a->seq_kv; j++) {
                const float *k = (const float *)a->k + j * a->k_stride;
                float sum = 0.0f;
                for (size_t i = 0; i < a->head_dim; i++) {
                    sum += q[i] * k[i];
                }
#ifdef REVERSED
                const size_t to = a->seq_kv - 1 - j;
#else
                const size_t to = j;
#endif
                a->s[h * a->s_head_stride + r * a->s_stride + to] = a->scale * sum;
            }
        }
    }
}

static const struct mha_kernel kernel = {
    .name = "qk_f32_scalar_broken",
    .op = "qk",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "broken",
    .summary = "right or not",
    .run = {.qk = qk},
};
static const struct mha_library_entry entries[] = {{&kernel, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "broken", "1", 1, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
