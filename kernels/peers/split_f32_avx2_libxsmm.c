/// split by libxsmm, held to AVX2.
///
/// Algorithm: heads_copy_libxsmm.inl. A copy: exact.
#define PEER_ARCHID LIBXSMM_X86_AVX2
#include "split_libxsmm.inl"

const struct mha_kernel split_f32_avx2_libxsmm = {
    .name = "split_f32_avx2_libxsmm",
    .op = "split",
    .dtype = "f32",
    .isa = "avx2",
    .tag = "libxsmm",
    .summary = "generated matrix copies, 32 tokens of a head each",
    .run = {.split = run},
    .supports = supports,
    .create = create,
    .destroy = destroy,
    .row_multiple = BLOCK,
    .step = BLOCK,
    .flags = MHA_FLAG_PEER,
};
