/// softmax by oneDNN, held to AVX2.
///
/// Algorithm and error bound: softmax_onednn.inl.
#define PEER_ISA avx2
#include "softmax_onednn.inl"
