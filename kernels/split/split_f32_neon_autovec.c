#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL split_f32_neon_autovec
#include "split_f32_autovec.inl"
