/// qkv_proj by OpenBLAS, held to AVX-512.
///
/// Algorithm and error bound: proj_product.inl and openblas.c.
#define PEER_ISA avx512
#define PROJ_OP qkv_proj
#include "openblas.h"
#include "proj_product.inl"
