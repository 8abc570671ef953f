/// Static inline helpers of the AVX2 level (AVX2 + FMA + F16C), shared by the kernels of several ops.
#ifndef MHA_VEC_AVX2_H
#define MHA_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

/// Makes the mask of the first `n` of 8 lanes, for vmaskmov; 0 <= n <= 8. Masked lanes are not
/// accessed, so that a tail never reads or writes past its end.
static inline __m256i vec_avx2_mask(size_t n) {
    // A window over eight ones and eight zeros.
    static const int32_t window[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(window + 8 - n));
}

#endif
