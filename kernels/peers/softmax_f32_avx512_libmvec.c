/// softmax by glibc's libmvec, held to AVX-512.
///
/// Algorithm and error bound: softmax_libmvec.inl.
#define PEER_ISA avx512
#include "softmax_libmvec.inl"
