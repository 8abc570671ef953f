#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL bias_f32_avx512_autovec
#include "bias_f32_autovec.inl"
