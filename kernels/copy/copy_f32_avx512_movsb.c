#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL copy_f32_avx512_movsb
#include "copy_f32_movsb.inl"
