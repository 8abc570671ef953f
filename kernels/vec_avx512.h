/// Static inline helpers of the AVX-512 level (F + BW + DQ + VL), shared by the kernels of several ops.
#ifndef MHA_VEC_AVX512_H
#define MHA_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/// Makes the mask of the first `n` of 16 lanes; 0 <= n <= 16. Masked lanes are not accessed.
static inline __mmask16 vec_avx512_mask(size_t n) {
    return (__mmask16)((1u << n) - 1u);
}

#endif
