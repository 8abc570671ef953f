/// qk by libxsmm, held to AVX-512.
///
/// Algorithm and error bound: qk_libxsmm.inl.
#define PEER_ARCHID LIBXSMM_X86_AVX512_CORE
#include "qk_libxsmm.inl"

const struct mha_kernel qk_f32_avx512_libxsmm = {
    .name = "qk_f32_avx512_libxsmm",
    .op = "qk",
    .dtype = "f32",
    .isa = "avx512",
    .tag = "libxsmm",
    .summary = "generated code, packed K, blocks of 64 x 64",
    .run = {.qk = run},
    .pack = {.qk = pack},
    .packed_bytes = packed_bytes,
    .supports = supports,
    .create = create,
    .destroy = destroy,
    .row_multiple = LIBXSMM_BLOCK_MAX,
    .step = LIBXSMM_BLOCK_MAX,
    .flags = MHA_FLAG_PEER,
};
