/// Elements of bf16 and f16 in kernels: their type, where they are, and how one becomes a float.
/// Whole vectors are widened by widen_<isa>.h. Both conversions are exact, so that a kernel over
/// widened elements has the error of the same kernel over floats.
#ifndef MHA_WIDEN_H
#define MHA_WIDEN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// What an operand is stored as; a constant wherever it is passed.
enum widen_type { WIDEN_F32, WIDEN_BF16, WIDEN_F16 };

/// Bytes of one element.
static inline size_t widen_bytes(enum widen_type type) {
    return type == WIDEN_F32 ? sizeof(float) : sizeof(uint16_t);
}

/// Gets the address of element `index` of an operand.
static inline const void *widen_at(enum widen_type type, const void *p, size_t index) {
    return (const char *)p + index * widen_bytes(type);
}

/// Gets the distance in floats between widened rows of `count` elements: whole cache lines, and one
/// more, so that rows whose length is a power of two do not share the sets of a cache.
static inline size_t widen_stride(size_t count) {
    return (count + 15) / 16 * 16 + 16;
}

/// Gets a bf16 as a float: it is the upper half of one.
static inline float widen_bf16(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

/// Gets an f16 as a float, in a way that vectorises. Exponent and fraction move to where a float
/// has them; that makes a number 2^112 too small, a denormal for a denormal, and for infinity and
/// NaN the exponent is set.
static inline float widen_f16(uint16_t bits) {
    const uint32_t magnitude = (uint32_t)(bits & 0x7fffu) << 13;
    float value;
    memcpy(&value, &magnitude, sizeof(value));
    value *= 0x1p+112f;
    uint32_t wide;
    memcpy(&wide, &value, sizeof(wide));
    wide |= magnitude >= 0x0f800000u ? 0x7f800000u : 0;
    wide |= (uint32_t)(bits & 0x8000u) << 16;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

#endif
