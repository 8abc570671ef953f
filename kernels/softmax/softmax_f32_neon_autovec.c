/// softmax, f32: the compiler's own vectors of the neon level; see softmax_f32_autovec.inl.
#define SOFTMAX_AUTOVEC_ISA "neon"
#define SOFTMAX_AUTOVEC_NAME softmax_f32_neon_autovec
#include "softmax/softmax_f32_autovec.inl"
