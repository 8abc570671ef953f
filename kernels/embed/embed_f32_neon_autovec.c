#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL embed_f32_neon_autovec
#include "embed_f32_autovec.inl"
