#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL rope_f32_avx2_autovec
#include "rope_f32_autovec.inl"
