/// Copies of one head's tokens by libxsmm: what concat and split have in common.
///
/// The library's documented entry, libxsmm_matcopy(), does not use its code generator by default
/// and reaches a fraction of memcpy; the generated kernel behind it is asked for directly. It has
/// fixed sizes and strides, so that the last tokens get a kernel of their own.
#include <stdlib.h>

#include "libxsmm_isa.h"
#include "mha_kernel.h"

/// Tokens of a block: for these all heads are copied before the next ones.
#define BLOCK 32u

/// The generated kernels of a shape with dense rows.
struct copy_kernels {
    size_t last_tokens;
    size_t in_stride;
    size_t out_stride;
    libxsmm_xmcopyfunction whole;
    libxsmm_xmcopyfunction last;
};

static libxsmm_xmcopyfunction dispatch(size_t tokens, size_t head_dim, size_t in_stride,
                                       size_t out_stride) {
    libxsmm_descriptor_blob blob;
    // Without unrolling the loop over a row of 64 takes 5 to 10 % longer; 4 and 8 are alike.
    const int unroll = 4;
    return libxsmm_dispatch_mcopy(
        libxsmm_mcopy_descriptor_init(&blob, sizeof(float), (unsigned)head_dim, (unsigned)tokens,
                                      (unsigned)out_stride, (unsigned)in_stride, 0, 0, &unroll));
}

static void destroy(void *state) {
    // The generated code belongs to the library's registry, which other shapes share.
    free(state);
}

static void *create_copy(const struct mha_shape *shape, size_t in_stride, size_t out_stride) {
    if (!libxsmm_hold()) {
        return NULL;
    }
    struct copy_kernels *kernels = calloc(1, sizeof(*kernels));
    if (!kernels) {
        return NULL;
    }
    kernels->last_tokens = shape->seq_q % BLOCK;
    kernels->in_stride = in_stride;
    kernels->out_stride = out_stride;
    if (shape->seq_q >= BLOCK) {
        kernels->whole = dispatch(BLOCK, shape->head_dim, in_stride, out_stride);
    }
    if (kernels->last_tokens > 0) {
        kernels->last = dispatch(kernels->last_tokens, shape->head_dim, in_stride, out_stride);
    }
    if ((shape->seq_q >= BLOCK && !kernels->whole) ||
        (kernels->last_tokens > 0 && !kernels->last)) {
        destroy(kernels);
        return NULL;
    }
    return kernels;
}

/// Gets the kernel of a block: create() made it, unless rows are not dense or an item is cut
/// otherwise than row_multiple asks for; the library then generates it once and finds it again.
static libxsmm_xmcopyfunction kernel_of(const struct copy_kernels *kernels, size_t tokens,
                                        size_t head_dim, size_t in_stride, size_t out_stride) {
    if (in_stride == kernels->in_stride && out_stride == kernels->out_stride) {
        if (tokens == BLOCK) {
            return kernels->whole;
        }
        if (tokens == kernels->last_tokens) {
            return kernels->last;
        }
    }
    return dispatch(tokens, head_dim, in_stride, out_stride);
}

/// Copies [heads, tokens, head_dim] with these strides.
static void copy_heads(const struct copy_kernels *kernels, size_t heads, size_t tokens,
                       size_t head_dim, const float *in, size_t in_head_stride, size_t in_stride,
                       float *out, size_t out_head_stride, size_t out_stride) {
    const unsigned ldi = (unsigned)in_stride;
    const unsigned ldo = (unsigned)out_stride;
    for (size_t first = 0; first < tokens; first += BLOCK) {
        const size_t count = tokens - first < BLOCK ? tokens - first : BLOCK;
        const libxsmm_xmcopyfunction kernel =
            kernel_of(kernels, count, head_dim, in_stride, out_stride);
        if (!kernel) {
            return;  // the output stays as it was, and the check finds it
        }
        for (size_t h = 0; h < heads; h++) {
            kernel(in + h * in_head_stride + first * in_stride, &ldi,
                   out + h * out_head_stride + first * out_stride, &ldo);
        }
    }
    _mm256_zeroupper();  // generated code leaves it to its caller
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    if (shape->head_dim <= SIZE_MAX / shape->heads &&
        libxsmm_reaches(shape->heads * shape->head_dim)) {
        return true;
    }
    if (why) {
        *why = "rows are longer than libxsmm's generated code reaches";
    }
    return false;
}
