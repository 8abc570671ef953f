/// qkv_proj by OpenBLAS, held to AVX2.
///
/// Algorithm and error bound: proj_product.inl and openblas.c.
#define PEER_ISA avx2
#define PROJ_OP qkv_proj
#include "openblas.h"
#include "proj_product.inl"
