/// softmax by glibc's libmvec, held to AVX2.
///
/// Algorithm and error bound: softmax_libmvec.inl.
#define PEER_ISA avx2
#include "softmax_libmvec.inl"
