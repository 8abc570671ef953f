/// rope_f32, AVX2 with streaming stores; see rope_lanes.inl.
#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL rope_f32_avx2_nt
#define LANES_PAST_CACHES
#define LANES_VECTOR "lanes_avx2.h"
#include "rope_lanes.inl"
