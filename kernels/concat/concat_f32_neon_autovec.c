#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL concat_f32_neon_autovec
#include "concat_f32_autovec.inl"
