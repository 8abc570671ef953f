/// sdpa by libxsmm, held to AVX2, with a softmax on libmvec in between.
///
/// Algorithm and error bound: sdpa_product.inl and libxsmm.c.
#define PEER_ISA avx2
#include "libxsmm_product.h"
#include "sdpa_product.inl"
