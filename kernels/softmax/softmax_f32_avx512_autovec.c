/// softmax, f32: the compiler's own vectors of the avx512 level; see softmax_f32_autovec.inl.
#define SOFTMAX_AUTOVEC_ISA "avx512"
#define SOFTMAX_AUTOVEC_NAME softmax_f32_avx512_autovec
#include "softmax/softmax_f32_autovec.inl"
