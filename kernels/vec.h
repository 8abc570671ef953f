/// Constants that the vector helpers of several ISAs share.
#ifndef MHA_VEC_H
#define MHA_VEC_H

/// log2(e), and what its rounding leaves of it: together good to 2^-50.
#define VEC_LOG2_E 0x1.715476p+0f
#define VEC_LOG2_E_REST 0x1.4ae0c0p-26f

/// ln(2), rounded.
#define VEC_LN_2 0x1.62e430p-1f

#endif
