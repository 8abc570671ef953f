/// softmax by SLEEF, held to AVX-512.
///
/// Algorithm and error bound: softmax_sleef.inl.
#define PEER_ISA avx512
#include "softmax_sleef.inl"
