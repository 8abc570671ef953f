#include "buffers.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fault_report.h"

const struct layout layout_dense = {PLACE_FRONT, 0, 0, 0};

/// What stands in gaps, at even addresses and at odd ones: 0xffc5, a NaN in bf16 and in f16 and,
/// twice, as a float. What a kernel takes from a gap shows, if only times zero.
enum { CANARY_EVEN = 0xc5, CANARY_ODD = 0xff };

/// A narrow element without a value of its own: a quiet NaN in bf16 and in f16.
static const uint16_t poison_narrow = 0x7fc5;

/// Gaps of this size are mostly address space: canaries stand in the first and last bytes alone.
enum { WIDE_GAP_BYTES = 4 << 20, WIDE_GAP_END_BYTES = 4096 };

static bool is_wide(const struct tensor_shape *shape, const struct layout *layout) {
    return layout->row_pad >= WIDE_GAP_BYTES / element_bytes(shape->element);
}

static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t row_stride(const struct tensor_shape *shape, const struct layout *layout) {
    return shape->cols + layout->row_pad;
}

static size_t plane_stride(const struct tensor_shape *shape, const struct layout *layout) {
    return shape->rows * row_stride(shape, layout) + layout->plane_pad;
}

/// Bytes from the first element to behind the last: the last row has no gap behind it.
static size_t extent_bytes(const struct tensor_shape *shape, const struct layout *layout) {
    if (shape->planes == 0 || shape->rows == 0 || shape->cols == 0) {
        return 0;
    }
    return element_bytes(shape->element) *
           ((shape->planes - 1) * plane_stride(shape, layout) +
            (shape->rows - 1) * row_stride(shape, layout) + shape->cols);
}

static size_t offset_bytes(const struct tensor_shape *shape, const struct layout *layout) {
    return layout->offset_bytes / sizeof(float) * element_bytes(shape->element);
}

static size_t inner_bytes(const struct tensor_shape *shape, const struct layout *layout) {
    const size_t page = page_bytes();
    const size_t bytes = extent_bytes(shape, layout) + offset_bytes(shape, layout);
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

size_t buffer_bytes(const struct tensor_shape *shape, const struct layout *layout) {
    return inner_bytes(shape, layout) + 2 * page_bytes();
}

bool buffer_make(struct buffer *buffer, const struct tensor_shape *shape,
                 const struct layout *layout) {
    const size_t page = page_bytes();
    memset(buffer, 0, sizeof(*buffer));
    buffer->map_bytes = buffer_bytes(shape, layout);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (is_wide(shape, layout) ? MAP_NORESERVE : 0);
    void *map = mmap(NULL, buffer->map_bytes, PROT_NONE, flags, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    buffer->map = map;
    buffer->inner = buffer->map + page;
    buffer->inner_bytes = buffer->map_bytes - 2 * page;
    if (mprotect(buffer->inner, buffer->inner_bytes, PROT_READ | PROT_WRITE) != 0) {
        buffer_free(buffer);
        return false;
    }
    // Large tensors get huge pages where the system allows it: TLB misses are not what is measured.
    madvise(buffer->inner, buffer->inner_bytes,
            is_wide(shape, layout) ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    const size_t extent = extent_bytes(shape, layout);
    unsigned char *start = layout->placement == PLACE_BACK
                               ? buffer->inner + (buffer->inner_bytes - extent)
                               : buffer->inner + offset_bytes(shape, layout);
    buffer->tensor =
        (struct tensor){*shape, start, row_stride(shape, layout), plane_stride(shape, layout)};
    fault_report_watch(shape->name, map, buffer->map_bytes, start, extent);
    return true;
}

typedef bool visit_fn(void *context, unsigned char *from, size_t bytes);

static bool visit_gap(visit_fn *visit, void *context, unsigned char *from, size_t bytes) {
    if (bytes < WIDE_GAP_BYTES) {
        return visit(context, from, bytes);
    }
    return visit(context, from, WIDE_GAP_END_BYTES) &&
           visit(context, from + bytes - WIDE_GAP_END_BYTES, WIDE_GAP_END_BYTES);
}

/// Calls `visit` for every stretch of bytes that belongs to no element; stops when it returns
/// false.
static bool for_each_gap(const struct buffer *buffer, visit_fn *visit, void *context) {
    const struct tensor *t = &buffer->tensor;
    unsigned char *at = buffer->inner;
    if (t->shape.cols > 0) {
        // A dense tensor has gaps before and behind it only.
        const bool dense =
            t->row_stride == t->shape.cols && t->plane_stride == t->shape.rows * t->row_stride;
        const size_t planes = dense && t->shape.planes * t->shape.rows > 0 ? 1 : t->shape.planes;
        const size_t rows = dense ? 1 : t->shape.rows;
        const size_t row_elements =
            dense ? t->shape.planes * t->shape.rows * t->shape.cols : t->shape.cols;
        for (size_t p = 0; p < planes; p++) {
            for (size_t r = 0; r < rows && row_elements > 0; r++) {
                unsigned char *row = tensor_at(t, p, r);
                if (row > at && !visit_gap(visit, context, at, (size_t)(row - at))) {
                    return false;
                }
                at = row + row_elements * element_bytes(t->shape.element);
            }
        }
    }
    const unsigned char *end = buffer->inner + buffer->inner_bytes;
    return at >= end || visit_gap(visit, context, at, (size_t)(end - at));
}

static inline unsigned char canary_at(const unsigned char *at) {
    return (uintptr_t)at % 2 == 0 ? CANARY_EVEN : CANARY_ODD;
}

static bool set_gap(void *context, unsigned char *from, size_t bytes) {
    (void)context;
    for (size_t i = 0; i < bytes; i++) {
        from[i] = canary_at(from + i);
    }
    return true;
}

static bool check_gap(void *context, unsigned char *from, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        if (from[i] != canary_at(from + i)) {
            *(unsigned char **)context = from + i;
            return false;
        }
    }
    return true;
}

void buffer_set_canaries(struct buffer *buffer) {
    for_each_gap(buffer, set_gap, NULL);
}

void buffer_poison(struct buffer *buffer) {
    const struct tensor *t = &buffer->tensor;
    const uint32_t bits = BUFFER_POISON_BITS;
    float poison;
    memcpy(&poison, &bits, sizeof(poison));
    buffer_set_canaries(buffer);
    for (size_t p = 0; p < t->shape.planes; p++) {
        for (size_t r = 0; r < t->shape.rows; r++) {
            unsigned char *row = tensor_at(t, p, r);
            for (size_t c = 0; c < t->shape.cols; c++) {
                if (t->shape.element == ELEMENT_F32) {
                    memcpy(row + c * sizeof(poison), &poison, sizeof(poison));
                } else {
                    memcpy(row + c * sizeof(poison_narrow), &poison_narrow, sizeof(poison_narrow));
                }
            }
        }
    }
}

void buffer_protect(struct buffer *buffer, bool read_only) {
    mprotect(buffer->inner, buffer->inner_bytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
}

bool buffer_intact(const struct buffer *buffer, char *text, size_t size) {
    unsigned char *damaged = NULL;
    if (for_each_gap(buffer, check_gap, &damaged)) {
        return true;
    }
    const struct tensor *t = &buffer->tensor;
    const unsigned char *start = t->data;
    if (damaged < start) {
        snprintf(text, size, "wrote %zu bytes before %s", (size_t)(start - damaged), t->shape.name);
        return false;
    }
    const size_t element = (size_t)(damaged - start) / element_bytes(t->shape.element);
    const size_t plane = t->plane_stride ? element / t->plane_stride : 0;
    const size_t in_plane = t->plane_stride ? element % t->plane_stride : 0;
    const size_t row = t->row_stride ? in_plane / t->row_stride : 0;
    const size_t col = t->row_stride ? in_plane % t->row_stride : 0;
    snprintf(text, size, "wrote outside %s: plane %zu, row %zu, column %zu of %zu", t->shape.name,
             plane, row, col, t->shape.cols);
    return false;
}

uint64_t buffer_hash(const struct buffer *buffer) {
    // Four independent multiply-xor chains over 8-byte words: as fast as memory, and any changed
    // bit changes the result with near certainty. The multiplier is the 64-bit golden ratio, made
    // odd.
    const uint64_t k = 0x9e3779b97f4a7c15u;
    const struct tensor *t = &buffer->tensor;
    uint64_t lanes[4] = {1, 2, 3, 4};
    for (size_t p = 0; p < t->shape.planes; p++) {
        for (size_t r = 0; r < t->shape.rows; r++) {
            const unsigned char *row = tensor_at(t, p, r);
            const size_t bytes = t->shape.cols * element_bytes(t->shape.element);
            size_t i = 0;
            for (; i + 32 <= bytes; i += 32) {
                for (size_t l = 0; l < 4; l++) {
                    uint64_t word;
                    memcpy(&word, row + i + 8 * l, sizeof(word));
                    lanes[l] = (lanes[l] ^ word) * k;
                    lanes[l] ^= lanes[l] >> 29;
                }
            }
            for (; i < bytes; i += 4) {
                uint32_t word = 0;
                memcpy(&word, row + i, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
                lanes[0] = (lanes[0] ^ word) * k;
                lanes[0] ^= lanes[0] >> 29;
            }
        }
    }
    uint64_t hash = 0;
    for (size_t l = 0; l < 4; l++) {
        hash = (hash ^ lanes[l]) * k;
        hash ^= hash >> 32;
    }
    return hash;
}

void buffer_free(struct buffer *buffer) {
    if (buffer->map) {
        fault_report_forget(buffer->map);
        munmap(buffer->map, buffer->map_bytes);
    }
    memset(buffer, 0, sizeof(*buffer));
}
