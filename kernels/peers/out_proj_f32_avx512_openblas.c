/// out_proj by OpenBLAS, held to AVX-512.
///
/// Algorithm and error bound: proj_product.inl and openblas.c.
#define PEER_ISA avx512
#define PROJ_OP out_proj
#include "openblas.h"
#include "proj_product.inl"
