#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL bias_f32_neon_autovec
#include "bias_f32_autovec.inl"
