/// rope_f32, AVX2; see rope_lanes.inl.
#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL rope_f32_avx2_u4
#define LANES_VECTOR "lanes_avx2.h"
#include "rope_lanes.inl"
