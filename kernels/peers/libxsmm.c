/// product.h by libxsmm's generated matrix products of at most BLOCK x BLOCK x BLOCK.
///
/// The library is column-major: C = A * B, row-major, is C^T = B^T * A^T there. Its generator takes
/// no transposed left operand and no factor: product_pack() transposes by libxsmm_otrans() and
/// multiplies by the factor. Generated code has fixed sizes and strides; the library keeps what it
/// has generated and finds it again.
///
/// Error: as the library documents none, the usual one of a product, |error| <= gamma_(depth + 1)
/// sum |a_i b_i|, the factor included.
#define ARCHID_avx2 LIBXSMM_X86_AVX2
#define ARCHID_avx512 LIBXSMM_X86_AVX512_CORE
#define ARCHID_(isa) ARCHID_##isa
#define ARCHID(isa) ARCHID_(isa)
#define PEER_ARCHID ARCHID(PEER_ISA)

#include <pthread.h>

#include "libxsmm_isa.h"
#include "libxsmm_product.h"

enum { BLOCK = LIBXSMM_BLOCK_MAX };

static bool held;

static void hold(void) {
    held = libxsmm_hold();
}

static bool ready(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hold);
    if (!held && why) {
        *why = "libxsmm does not run at this level here";
    }
    return held;
}

bool product_supports(const struct mha_shape *shape, const char **why) {
    return product_within(shape, LIBXSMM_REACH, why) && ready(why);
}

void *product_new(void) {
    return ready(NULL) ? &held : NULL;  // the library keeps what it generates
}

void product_free(void *state) {
    (void)state;
}

/// What generated code leaves to its caller. No intrinsic: this file is built for any x86.
static void clear_upper_halves(void) {
    __asm__ volatile("vzeroupper");
}

static size_t block_of(size_t left) {
    return left < BLOCK ? left : BLOCK;
}

static libxsmm_smmfunction dispatch(const struct product *p, size_t rows, size_t cols, size_t depth,
                                    bool add) {
    const bool packed = p->b_is == B_PACKED;
    const libxsmm_blasint lda = packed ? BLOCK : (libxsmm_blasint)p->b_stride;
    const libxsmm_blasint ldb = (libxsmm_blasint)p->a_stride;
    const libxsmm_blasint ldc = (libxsmm_blasint)p->c_stride;
    const float alpha = 1.0f;
    const float beta = add ? 1.0f : 0.0f;
    const int flags = LIBXSMM_GEMM_FLAG_NONE;
    const int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    return libxsmm_smmdispatch((libxsmm_blasint)cols, (libxsmm_blasint)rows, (libxsmm_blasint)depth,
                               &lda, &ldb, &ldc, &alpha, &beta, &flags, &prefetch);
}

/// Goes through the blocks of a product, to run them or only to have their code. False: the library
/// does not generate it.
static bool each_block(const struct product *p, bool runs) {
    const bool packed = p->b_is == B_PACKED;
    const size_t depth_step = packed ? p->depth : BLOCK;
    for (size_t row = 0; row < p->rows; row += BLOCK) {
        for (size_t col = 0; col < p->cols; col += BLOCK) {
            for (size_t i = 0; i < p->depth; i += depth_step) {
                const size_t depth = p->depth - i < depth_step ? p->depth - i : depth_step;
                const libxsmm_smmfunction kernel = dispatch(
                    p, block_of(p->rows - row), block_of(p->cols - col), depth, p->add || i > 0);
                if (!kernel) {
                    return false;
                }
                if (runs) {
                    kernel(p->b + (packed ? col * p->depth : i * p->b_stride + col),
                           p->a + row * p->a_stride + i, p->c + row * p->c_stride + col);
                }
            }
        }
    }
    return true;
}

bool product_prepare(void *state, const struct product *product) {
    (void)state;
    return each_block(product, false);
}

void product_run(const void *state, const struct product *product) {
    (void)state;
    each_block(product, true);
    clear_upper_halves();
}

size_t product_packed_bytes(size_t depth, size_t cols) {
    return (cols + BLOCK - 1) / BLOCK * BLOCK * depth * sizeof(float);
}

void product_pack(const void *state, const struct product *p, void *packed) {
    (void)state;
    for (size_t col = 0; col < p->cols; col += BLOCK) {
        const size_t cols = block_of(p->cols - col);
        float *to = (float *)packed + col * p->depth;
        libxsmm_otrans(to, p->b + col * p->b_stride, sizeof(float), (libxsmm_blasint)p->depth,
                       (libxsmm_blasint)cols, (libxsmm_blasint)p->b_stride, BLOCK);
        for (size_t i = 0; i < p->depth; i++) {
            for (size_t j = 0; j < cols; j++) {
                to[i * BLOCK + j] *= p->factor;
            }
        }
    }
    clear_upper_halves();
}
