// qk over cblas_sgemm(), as a plug-in: S = scale * Q * K^T, one call per head.
//   cc -O3 -shared -fPIC -I kernels tests/plugin/qk_cblas.c -o qk_cblas.so -lopenblas
//
// OpenBLAS picks its code by the CPU: on one with AVX-512 it does more than the ISA word here says.
#include <cblas.h>
#include <limits.h>
#include <mha_kernel.h>

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    // BLAS counts in int, strides included; gaps between rows are at most a few elements.
    const size_t most = INT_MAX / 2;
    *why = "cblas_sgemm() counts in int";
    return shape->seq_q < most && shape->seq_kv < most && shape->head_dim < most;
}

static void qk(const struct mha_qk_args *a, void *workspace) {
    (void)workspace;
    const float *q = (const float *)a->q;
    if (a->rows == 0 || a->seq_kv == 0) {
        return;
    }
    for (size_t h = 0; h < a->heads; h++) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)a->rows, (int)a->seq_kv,
                    (int)a->head_dim, a->scale, q + h * a->q_head_stride, (int)a->q_stride,
                    (const float *)a->k, (int)a->k_stride, 0.0f, a->s + h * a->s_head_stride,
                    (int)a->s_stride);
    }
}

static const struct mha_kernel kernel = {
    .name = "qk_f32_avx2_cblas_plugged",
    .op = "qk",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "cblas_plugged",
    .summary = "cblas_sgemm, one call per head",
    .run = {.qk = qk},
    .supports = supports,
    .flags = MHA_FLAG_PEER | MHA_FLAG_NONDETERMINISTIC,
};
static const struct mha_library_entry entries[] = {{&kernel, ""}};

const struct mha_library *mha_kernel_library(void) {
    static struct mha_library library = {MHA_ABI_VERSION, sizeof(struct mha_kernel), "BLAS", "", 1,
                                         entries};
#ifdef OPENBLAS_VERSION
    library.version = OPENBLAS_VERSION;
#endif
    // The harness has the threads.
    openblas_set_num_threads(1);
    return &library;
}
