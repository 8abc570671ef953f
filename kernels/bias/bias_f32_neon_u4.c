/// bias_f32, NEON; see bias_lanes.inl.
#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL bias_f32_neon_u4
#define LANES_VECTOR "lanes_neon.h"
#include "bias_lanes.inl"
