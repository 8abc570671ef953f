/// rope_f32, NEON with streaming stores; see rope_lanes.inl.
#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL rope_f32_neon_nt
#define LANES_PAST_CACHES
#define LANES_VECTOR "lanes_neon.h"
#include "rope_lanes.inl"
