/// sdpa by oneDNN, held to AVX-512, with a softmax on libmvec in between.
///
/// Algorithm and error bound: sdpa_product.inl and onednn.c.
#define PEER_ISA avx512
#include "onednn.h"
#include "sdpa_product.inl"
