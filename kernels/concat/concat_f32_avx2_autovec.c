#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL concat_f32_avx2_autovec
#include "concat_f32_autovec.inl"
