/// pv by oneDNN, held to AVX-512.
///
/// Algorithm and error bound: pv_product.inl and onednn.c.
#define PEER_ISA avx512
#include "onednn.h"
#include "pv_product.inl"
