// qk of bf16 and f16 that knows what a file's values are once rounded: Q counts up in steps of
// 1/64, eight to a row, and in one row a value lies in the middle between two of the type, twice.
// Where Q holds anything else there than the even neighbours, no score of the row is written.
#include <mha_kernel.h>
#include <widen.h>

struct middle {
    size_t row;
    uint16_t below, above;  // what columns 1 and 3 become: the even one is below, and above
};

// 257/64 and 259/64 with 8 significant bits; 2049/64 and 2051/64 with 11.
static const struct middle bf16_middle = {32, 0x4080, 0x4082};
static const struct middle f16_middle = {256, 0x5000, 0x5002};

static void qk(const struct mha_qk_args *a, const struct middle *middle, float (*load)(uint16_t)) {
    for (size_t h = 0; h < a->heads; h++) {
        for (size_t r = 0; r < a->rows; r++) {
            const uint16_t *q = (const uint16_t *)a->q + h * a->q_head_stride + r * a->q_stride;
            if (a->first_row + r == middle->row &&
                (q[1] != middle->below || q[3] != middle->above)) {
                continue;
            }
            for (size_t j = 0; j < a->seq_kv; j++) {
                const uint16_t *k = (const uint16_t *)a->k + j * a->k_stride;
                float sum = 0.0f;
                for (size_t i = 0; i < a->head_dim; i++) {
                    sum += load(q[i]) * load(k[i]);
                }
                a->s[h * a->s_head_stride + r * a->s_stride + j] = a->scale * sum;
            }
        }
    }
}

static void qk_bf16(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    qk(args, &bf16_middle, widen_bf16);
}

static void qk_f16(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    qk(args, &f16_middle, widen_f16);
}

static const struct mha_kernel bf16 = {
    .name = "qk_bf16_scalar_rounded",
    .op = "qk",
    .dtype = "bf16",
    .isa = "scalar",
    .tag = "rounded",
    .summary = "right for one file, rounded",
    .run = {.qk = qk_bf16},
};
static const struct mha_kernel f16 = {
    .name = "qk_f16_scalar_rounded",
    .op = "qk",
    .dtype = "f16",
    .isa = "scalar",
    .tag = "rounded",
    .summary = "right for one file, rounded",
    .run = {.qk = qk_f16},
};
static const struct mha_library_entry entries[] = {{&bf16, ""}, {&f16, ""}};
static const struct mha_library library = {
    MHA_ABI_VERSION, sizeof(struct mha_kernel), "rounded", "1", 2, entries};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
