#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL rope_f32_avx512_autovec
#include "rope_f32_autovec.inl"
