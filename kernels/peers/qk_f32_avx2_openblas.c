/// qk by OpenBLAS, held to AVX2.
///
/// Algorithm and error bound: qk_product.inl and openblas.c.
#define PEER_ISA avx2
#include "openblas.h"
#include "qk_product.inl"
