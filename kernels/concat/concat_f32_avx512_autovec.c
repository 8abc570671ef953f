#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL concat_f32_avx512_autovec
#include "concat_f32_autovec.inl"
