/// What the oneDNN peers have in common, in onednn.c: product.h by its matmul primitive, and its
/// softmax and reorder primitives.
#ifndef MHA_ONEDNN_H
#define MHA_ONEDNN_H

#include "product.h"

#define PEER_LIBRARY onednn
#define PRODUCT_SUMMARY "matmul primitives"
/// Products need a primitive of their sizes, and packing pays.
#define PRODUCT_PREPARES 1

/// A softmax over each of `rows` rows; y may be x.
struct onednn_softmax {
    size_t rows;
    size_t cols;
    const float *x;
    size_t x_stride;
    float *y;
    size_t y_stride;
};
bool onednn_softmax_prepare(void *state, const struct onednn_softmax *softmax);
void onednn_softmax_run(const void *state, const struct onednn_softmax *softmax);

/// A copy of [planes, rows, cols] from one pair of strides to another.
struct onednn_copy {
    size_t planes;
    size_t rows;
    size_t cols;
    const float *x;
    size_t x_plane_stride;
    size_t x_stride;
    float *y;
    size_t y_plane_stride;
    size_t y_stride;
};
bool onednn_copy_prepare(void *state, const struct onednn_copy *copy);
void onednn_copy_run(const void *state, const struct onednn_copy *copy);

#endif
