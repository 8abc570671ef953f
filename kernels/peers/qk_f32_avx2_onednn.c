/// qk by oneDNN, held to AVX2.
///
/// Algorithm and error bound: qk_product.inl and onednn.c.
#define PEER_ISA avx2
#include "onednn.h"
#include "qk_product.inl"
