/// softmax by oneDNN, held to AVX-512.
///
/// Algorithm and error bound: softmax_onednn.inl.
#define PEER_ISA avx512
#include "softmax_onednn.inl"
