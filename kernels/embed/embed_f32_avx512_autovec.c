#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL embed_f32_avx512_autovec
#include "embed_f32_autovec.inl"
