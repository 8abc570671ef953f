/// bias_f32, AVX-512 with streaming stores; see bias_lanes.inl.
#define MHA_ISA_NAME "avx512"
#define MHA_KERNEL_SYMBOL bias_f32_avx512_nt
#define LANES_PAST_CACHES
#define LANES_VECTOR "lanes_avx512.h"
#include "bias_lanes.inl"
