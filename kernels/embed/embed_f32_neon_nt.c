/// embed_f32, NEON with streaming stores; see embed_lanes.inl.
#define MHA_ISA_NAME "neon"
#define MHA_KERNEL_SYMBOL embed_f32_neon_nt
#define LANES_PAST_CACHES
#define LANES_VECTOR "lanes_neon.h"
#include "embed_lanes.inl"
