#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL split_f32_avx512_autovec
#include "split_f32_autovec.inl"
