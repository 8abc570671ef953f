/// concat by oneDNN, held to AVX-512.
///
/// Algorithm and error bound: concat_onednn.inl.
#define PEER_ISA avx512
#include "concat_onednn.inl"
