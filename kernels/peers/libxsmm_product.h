/// libxsmm behind product.h, in libxsmm.c: for pipelines. Its own qk is in qk_libxsmm.inl.
#ifndef MHA_LIBXSMM_PRODUCT_H
#define MHA_LIBXSMM_PRODUCT_H

#include "product.h"

#define PEER_LIBRARY libxsmm
#define PRODUCT_SUMMARY "generated code, packed K,"
/// Products need generated code of their sizes.
#define PRODUCT_PREPARES 1
/// A transposed right factor has to be packed, with the product's factor folded in; the columns of
/// its pieces, each of which can stand alone.
#define PRODUCT_PACK_COLS 64

#endif
