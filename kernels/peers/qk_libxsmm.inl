/// qk by libxsmm's small matrix multiplications: create() to run() of every ISA level.
///
/// Algorithm: the library is column-major and its code generator takes neither a transposed left
/// operand nor a factor. S = scale * Q * K^T, row-major, is S^T = (scale * K) * Q^T, column-major:
/// pack() transposes K by libxsmm_otrans() in blocks of BLOCK keys and multiplies them by scale;
/// run() calls one generated kernel per block of S. A generated kernel has fixed sizes and strides,
/// so that edges get kernels of their own.
///
/// Error: as the library documents none, the product's usual one: scale * k is rounded once, then
/// come head_dim multiply-adds: |error| <= gamma_(head_dim + 1) * |scale| * sum_i |q_i k_i|.
#include <stdint.h>
#include <stdlib.h>

#include "libxsmm_isa.h"
#include "mha_kernel.h"

/// Keys and queries of a block: the library is made for products of (m n k)^(1/3) <= 64.
#define BLOCK ((size_t)LIBXSMM_BLOCK_MAX)

/// The generated kernels of a shape with dense rows: [the last keys][the last queries].
struct qk_kernels {
    size_t last_keys;
    size_t last_rows;
    size_t q_stride;
    size_t s_stride;
    libxsmm_smmfunction kernel[2][2];
};

static libxsmm_smmfunction dispatch(size_t keys, size_t rows, size_t head_dim, size_t q_stride,
                                    size_t s_stride) {
    const libxsmm_blasint lda = LIBXSMM_BLOCK_MAX;
    const libxsmm_blasint ldb = (libxsmm_blasint)q_stride;
    const libxsmm_blasint ldc = (libxsmm_blasint)s_stride;
    const float alpha = 1.0f;
    const float beta = 0.0f;
    const int flags = LIBXSMM_GEMM_FLAG_NONE;
    const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    return libxsmm_smmdispatch((libxsmm_blasint)keys, (libxsmm_blasint)rows,
                               (libxsmm_blasint)head_dim, &lda, &ldb, &ldc, &alpha, &beta, &flags,
                               &prefetch);
}

static size_t block_of(size_t left) {
    return left < BLOCK ? left : BLOCK;
}

static void destroy(void *state) {
    // The generated code belongs to the library's registry, which other shapes share.
    free(state);
}

static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    (void)mask;
    if (!libxsmm_hold()) {
        return NULL;
    }
    struct qk_kernels *kernels = calloc(1, sizeof(*kernels));
    if (!kernels) {
        return NULL;
    }
    kernels->last_keys = shape->seq_kv % BLOCK;
    kernels->last_rows = shape->seq_q % BLOCK;
    kernels->q_stride = shape->head_dim;
    kernels->s_stride = shape->seq_kv;
    const size_t keys[2] = {shape->seq_kv >= BLOCK ? BLOCK : 0, kernels->last_keys};
    const size_t rows[2] = {shape->seq_q >= BLOCK ? BLOCK : 0, kernels->last_rows};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            if (keys[i] == 0 || rows[j] == 0) {
                continue;
            }
            kernels->kernel[i][j] =
                dispatch(keys[i], rows[j], shape->head_dim, shape->head_dim, shape->seq_kv);
            if (!kernels->kernel[i][j]) {
                destroy(kernels);
                return NULL;
            }
        }
    }
    return kernels;
}

/// Gets the kernel of a block: create() made it, unless rows are not dense or an item is cut
/// otherwise than row_multiple asks for; the library then generates it once and finds it again.
static libxsmm_smmfunction kernel_of(const struct mha_qk_args *args, size_t keys, size_t rows) {
    const struct qk_kernels *kernels = args->state;
    const bool whole_keys = keys == BLOCK;
    const bool whole_rows = rows == BLOCK;
    if (args->q_stride == kernels->q_stride && args->s_stride == kernels->s_stride &&
        (whole_keys || keys == kernels->last_keys) && (whole_rows || rows == kernels->last_rows)) {
        return kernels->kernel[!whole_keys][!whole_rows];
    }
    return dispatch(keys, rows, args->head_dim, args->q_stride, args->s_stride);
}

static size_t packed_bytes(const struct mha_shape *shape) {
    return (shape->seq_kv + BLOCK - 1) / BLOCK * BLOCK * shape->head_dim * sizeof(float);
}

static void pack(const struct mha_qk_args *args, void *packed) {
    for (size_t first = 0; first < args->seq_kv; first += BLOCK) {
        const size_t keys = block_of(args->seq_kv - first);
        float *to = (float *)packed + first * args->head_dim;
        libxsmm_otrans(to, (const float *)args->k + first * args->k_stride, sizeof(float),
                       (libxsmm_blasint)args->head_dim, (libxsmm_blasint)keys,
                       (libxsmm_blasint)args->k_stride, LIBXSMM_BLOCK_MAX);
        for (size_t i = 0; i < args->head_dim; i++) {
            for (size_t j = 0; j < keys; j++) {
                to[i * BLOCK + j] *= args->scale;
            }
        }
    }
}

static void run(const struct mha_qk_args *args, void *workspace) {
    (void)workspace;
    for (size_t first_row = 0; first_row < args->rows; first_row += BLOCK) {
        const size_t rows = block_of(args->rows - first_row);
        for (size_t first = 0; first < args->seq_kv; first += BLOCK) {
            const size_t keys = block_of(args->seq_kv - first);
            const libxsmm_smmfunction kernel = kernel_of(args, keys, rows);
            if (!kernel) {
                return;  // the output stays as it was, and the check finds it
            }
            for (size_t h = 0; h < args->heads; h++) {
                kernel(
                    (const float *)args->packed + first * args->head_dim,
                    (const float *)args->q + h * args->q_head_stride + first_row * args->q_stride,
                    args->s + h * args->s_head_stride + first_row * args->s_stride + first);
            }
        }
    }
    _mm256_zeroupper();  // generated code leaves it to its caller
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    if (libxsmm_reaches(shape->head_dim) && libxsmm_reaches(shape->seq_kv)) {
        return true;
    }
    if (why) {
        *why = "rows are longer than libxsmm's generated code reaches";
    }
    return false;
}
