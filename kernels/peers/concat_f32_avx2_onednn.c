/// concat by oneDNN, held to AVX2.
///
/// Algorithm and error bound: concat_onednn.inl.
#define PEER_ISA avx2
#include "concat_onednn.inl"
