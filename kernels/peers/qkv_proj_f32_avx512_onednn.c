/// qkv_proj by oneDNN, held to AVX-512.
///
/// Algorithm and error bound: proj_product.inl and onednn.c.
#define PEER_ISA avx512
#define PROJ_OP qkv_proj
#include "onednn.h"
#include "proj_product.inl"
