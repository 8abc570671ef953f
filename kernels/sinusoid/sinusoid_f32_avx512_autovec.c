#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL sinusoid_f32_avx512_autovec
#include "sinusoid_f32_autovec.inl"
