/// softmax by SLEEF, held to AVX2.
///
/// Algorithm and error bound: softmax_sleef.inl.
#define PEER_ISA avx2
#include "softmax_sleef.inl"
