/// pv by OpenBLAS, held to AVX-512.
///
/// Algorithm and error bound: pv_product.inl and openblas.c.
#define PEER_ISA avx512
#include "openblas.h"
#include "pv_product.inl"
