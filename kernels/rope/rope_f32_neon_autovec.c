#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL rope_f32_neon_autovec
#include "rope_f32_autovec.inl"
