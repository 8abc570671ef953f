#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL copy_f32_avx2_movsb
#include "copy_f32_movsb.inl"
