#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL sinusoid_f32_neon_autovec
#include "sinusoid_f32_autovec.inl"
