/// sdpa by OpenBLAS, held to AVX-512, with a softmax on libmvec in between.
///
/// Algorithm and error bound: sdpa_product.inl and openblas.c.
#define PEER_ISA avx512
#include "openblas.h"
#include "sdpa_product.inl"
