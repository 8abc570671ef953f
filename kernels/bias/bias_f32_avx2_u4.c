/// bias_f32, AVX2; see bias_lanes.inl.
#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL bias_f32_avx2_u4
#define LANES_VECTOR "lanes_avx2.h"
#include "bias_lanes.inl"
