/// What the OpenBLAS peers have in common: product.h by cblas_sgemm(), in openblas.c.
#ifndef MHA_OPENBLAS_H
#define MHA_OPENBLAS_H

#include "product.h"

#define PEER_LIBRARY openblas
#define PRODUCT_SUMMARY "sgemm"

#endif
