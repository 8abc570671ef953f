#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL embed_f32_avx2_autovec
#include "embed_f32_autovec.inl"
