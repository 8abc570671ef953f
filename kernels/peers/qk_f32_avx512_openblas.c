/// qk by OpenBLAS, held to AVX-512.
///
/// Algorithm and error bound: qk_product.inl and openblas.c.
#define PEER_ISA avx512
#include "openblas.h"
#include "qk_product.inl"
