// qk with a fault that one value of Q alone brings out: the products of it are left out.
#include <mha_kernel.h>
#include <string.h>

enum { TRIGGER_BITS = 0 };  // of the value; commands.sh puts it in

static void qk(const struct mha_qk_args *a, void *workspace) {
    (void)workspace;
    for (size_t h = 0; h < a->heads; h++) {
        for (size_t r = 0; r < a->rows; r++) {
            const float *q = (const float *)a->q + h * a->q_head_stride + r * a->q_stride;
            for (size_t j = 0; j < a->seq_kv; j++) {
                const float *k = (const float *)a->k + j * a->k_stride;
                float sum = 0.0f;
                for (size_t i = 0; i < a->head_dim; i++) {
                    int bits;
                    memcpy(&bits, &q[i], sizeof(bits));
                    sum += bits == TRIGGER_BITS ? 0.0f : q[i] * k[i];
                }
                a->s[h * a->s_head_stride + r * a->s_stride + j] = a->scale * sum;
            }
        }
    }
}

static const struct mha_kernel kernel = {
    .name = "qk_f32_scalar_one_value",
    .op = "qk",
    .dtype = "f32",
    .isa = "scalar",
    .tag = "one_value",
    .summary = "wrong for one value",
    .run = {.qk = qk},
};
static const struct mha_library_entry entries[] = {{&kernel, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "one_value", "1", 1, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
