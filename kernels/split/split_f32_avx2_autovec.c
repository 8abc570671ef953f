#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL split_f32_avx2_autovec
#include "split_f32_autovec.inl"
