/// pv of bf16 by oneDNN, held to AVX-512 with BF16.
///
/// Algorithm and error bound: pv_product.inl and onednn.c.
#define PEER_DTYPE bf16
#define PEER_BF16
#define PEER_ISA avx512bf16
#include "onednn.h"
#include "pv_product.inl"
