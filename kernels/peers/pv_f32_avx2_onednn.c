/// pv by oneDNN, held to AVX2.
///
/// Algorithm and error bound: pv_product.inl and onednn.c.
#define PEER_ISA avx2
#include "onednn.h"
#include "pv_product.inl"
