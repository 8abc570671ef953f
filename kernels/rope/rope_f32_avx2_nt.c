/// rope_f32, AVX2 with streaming stores; see rope_lanes.inl. Fetching 1 KiB ahead took 10 to 19 %
/// less time from memory (Zen 3, 2 KiB as much; the angles as well: no less) and 3 to 13 % more
/// where L3 has x.
#define MHA_ISA_NAME "avx2"
#define MHA_KERNEL_SYMBOL rope_f32_avx2_nt
#define LANES_PAST_CACHES
#define ROPE_AHEAD 256
#define LANES_VECTOR "lanes_avx2.h"
#include "rope_lanes.inl"
