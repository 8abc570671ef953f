/// qk by oneDNN, held to AVX-512.
///
/// Algorithm and error bound: qk_product.inl and onednn.c.
#define PEER_ISA avx512
#include "onednn.h"
#include "qk_product.inl"
