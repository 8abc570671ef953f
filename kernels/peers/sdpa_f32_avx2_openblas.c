/// sdpa by OpenBLAS, held to AVX2, with a softmax on libmvec in between.
///
/// Algorithm and error bound: sdpa_product.inl and openblas.c.
#define PEER_ISA avx2
#include "openblas.h"
#include "sdpa_product.inl"
