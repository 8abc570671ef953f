/// sinusoid_f32, AVX-512 with streaming stores; see sinusoid_lanes.inl.
#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL sinusoid_f32_avx512_nt
#define LANES_PAST_CACHES
#define LANES_VECTOR "lanes_avx512.h"
#include "sinusoid_lanes.inl"
