/// softmax, f32: the compiler's own vectors of the avx2 level; see softmax_f32_autovec.inl.
#define SOFTMAX_AUTOVEC_ISA "avx2"
#define SOFTMAX_AUTOVEC_NAME softmax_f32_avx2_autovec
#include "softmax/softmax_f32_autovec.inl"
