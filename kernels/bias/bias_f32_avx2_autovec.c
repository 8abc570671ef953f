#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL bias_f32_avx2_autovec
#include "bias_f32_autovec.inl"
