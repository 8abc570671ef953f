#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL sinusoid_f32_avx2_autovec
#include "sinusoid_f32_autovec.inl"
