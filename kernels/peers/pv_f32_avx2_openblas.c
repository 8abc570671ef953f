/// pv by OpenBLAS, held to AVX2.
///
/// Algorithm and error bound: pv_product.inl and openblas.c.
#define PEER_ISA avx2
#include "openblas.h"
#include "pv_product.inl"
