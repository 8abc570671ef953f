/// sdpa at the AVX2 level: blocks of 96 queries by 256 keys, both products by the register tile 3 x
/// 32, exp2 by a table of 8 and a cubic (1.14 ULP).
///
/// Algorithm, error bound and tails: sdpa_blocked.inl; registers: gemm_avx2.h for the products, 11
/// of 16 in the loop of the exponentials.
#include "gemm_avx2.h"
#include "lanes_avx2.h"

static inline lanes lanes_max(lanes a, lanes b) {
    return _mm256_max_ps(a, b);
}

static inline lanes lanes_keep(lanes v, size_t n, lanes fill) {
    const __m256i mask = vec_avx2_mask(n < LANES ? n : LANES);
    return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(mask));
}

static inline lanes lanes_exp2(lanes d) {
    return vec_avx2_exp2(d);
}

static inline float lanes_reduce_max(lanes v) {
    return vec_avx2_reduce_max(v);
}

static inline float lanes_reduce_add(lanes v) {
    return vec_avx2_reduce_add(v);
}

static inline void lanes_store_sums(float *p, const lanes v[8], float factor) {
    // Sums of neighbours, twice: quarter i of the result is of v[i] in each half.
    const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    const __m256 sums =
        _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    _mm256_storeu_ps(p, _mm256_mul_ps(sums, _mm256_set1_ps(factor)));
}

#define SDPA_TILE gemm_avx2_tile
#define SDPA_ROWS gemm_avx2_rows
#define SDPA_MR GEMM_AVX2_MR
#define SDPA_NR GEMM_AVX2_NR
#define SDPA_PACK_TRANSPOSED gemm_avx2_pack_transposed
#define SDPA_PACK gemm_avx2_pack
#define SDPA_QUERIES 96
#define SDPA_KEYS 256
#include "sdpa/sdpa_blocked.inl"

const struct mha_kernel sdpa_f32_avx2_flash_3x32 = {
    .name = "sdpa_f32_avx2_flash_3x32",
    .op = "sdpa",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "flash_3x32",
    .summary = "online softmax over blocks of 96 x 256, register tile 3 x 32",
    .run = {.sdpa = run},
    .pack = {.sdpa = pack},
    .workspace_bytes = workspace_bytes,
    .packed_bytes = packed_bytes,
    .row_multiple = SDPA_MR,
    .step = SDPA_NR,
};
