/// sdpa by libxsmm, held to AVX-512, with a softmax on libmvec in between.
///
/// Algorithm and error bound: sdpa_product.inl and libxsmm.c.
#define PEER_ISA avx512
#include "libxsmm_product.h"
#include "sdpa_product.inl"
