/// Tensors in memory that notice what a kernel does to them: guard pages on both sides, canaries in
/// every byte that does not belong to the tensor, NaN in every element that should be written.
#ifndef MHA_BUFFERS_H
#define MHA_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"

enum placement {
    PLACE_BACK,   ///< The last element ends at a page without access.
    PLACE_FRONT,  ///< The first element starts right behind a page without access.
};

/// How a tensor lies in memory.
struct layout {
    enum placement placement;
    size_t offset_bytes;  ///< PLACE_FRONT: distance of floats from the guard page, a multiple of 4;
                          ///< 0 touches it. Elements of other types are as many elements away.
    size_t row_pad;       ///< Elements between the rows. From a million on, only the ends of a gap
                          ///< hold canaries, and the rest takes no memory.
    size_t plane_pad;     ///< Elements between the planes.
};

/// The layout that is timed: 64-byte aligned, dense, from the start of a page.
extern const struct layout layout_dense;

struct buffer {
    struct tensor tensor;
    unsigned char *map;  ///< The whole mapping, guard pages included.
    size_t map_bytes;
    unsigned char *inner;  ///< The accessible part.
    size_t inner_bytes;
};

/// The value of an element that no kernel has written: a quiet NaN with a payload of its own.
#define BUFFER_POISON_BITS 0x7fd00badu

/// Bytes of memory that a tensor of this shape takes with this layout, guard pages included.
size_t buffer_bytes(const struct tensor_shape *shape, const struct layout *layout);

/// Maps a tensor. Returns false when memory cannot be had. Contents are zero.
bool buffer_make(struct buffer *buffer, const struct tensor_shape *shape,
                 const struct layout *layout);

/// Sets the canaries, and every element to the poison.
void buffer_poison(struct buffer *buffer);

/// Sets the canaries only (inputs, before or after they are filled).
void buffer_set_canaries(struct buffer *buffer);

/// Makes an input read-only, or writable again.
void buffer_protect(struct buffer *buffer, bool read_only);

/// Tells whether all canaries stand. When not, describes the first damaged place in `text`.
bool buffer_intact(const struct buffer *buffer, char *text, size_t size);

/// Hash of the tensor's elements, bit for bit, in logical order; strides do not matter.
uint64_t buffer_hash(const struct buffer *buffer);

void buffer_free(struct buffer *buffer);

#endif
