#include "element.h"

#include <float.h>
#include <math.h>
#include <string.h>

/// A narrow format: bits of the fraction, exponent of the smallest normal value, infinity.
struct format {
    const char *word;
    size_t bytes;
    int fraction;
    int least;
    uint16_t infinity;
    double max;
};

/// bf16: Intel, "BFLOAT16 - Hardware Numerics Definition" (2018). f16: IEEE 754-2019, table 3.5.
static const struct format formats[ELEMENT_COUNT] = {
    [ELEMENT_F32] = {"f32", sizeof(float), 23, -126, 0, (double)FLT_MAX},
    [ELEMENT_BF16] = {"bf16", sizeof(uint16_t), 7, -126, 0x7f80, 0x1.fep+127},
    [ELEMENT_F16] = {"f16", sizeof(uint16_t), 10, -14, 0x7c00, 0x1.ffcp+15},
};

/// Fraction bits and exponent bias of a double.
enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023 };

const char *element_word(size_t element) {
    return element < ELEMENT_COUNT ? formats[element].word : NULL;
}

enum element element_find(const char *word) {
    enum element element = ELEMENT_F32;
    while (element < ELEMENT_COUNT && strcmp(formats[element].word, word) != 0) {
        element++;
    }
    return element;
}

size_t element_bytes(enum element element) {
    return formats[element].bytes;
}

double element_max(enum element element) {
    return formats[element].max;
}

float element_smallest(enum element element) {
    return ldexpf(1.0f, formats[element].least);
}

float element_widen(enum element element, uint16_t bits) {
    if (element == ELEMENT_BF16) {
        const uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, sizeof(value));
        return value;
    }
    const float sign = bits & 0x8000u ? -1.0f : 1.0f;
    const int exponent = bits >> 10 & 31;
    const float fraction = (float)(bits & 0x3ffu);
    if (exponent == 31) {
        return fraction > 0.0f ? NAN : sign * INFINITY;
    }
    // Denormals have the smallest exponent, and no leading 1.
    return sign *
           (exponent == 0 ? ldexpf(fraction, -24) : ldexpf(1024.0f + fraction, exponent - 25));
}

uint16_t element_narrow(enum element element, double value) {
    const struct format *f = &formats[element];
    const double magnitude = fabs(value);
    const uint16_t sign = signbit(value) ? 0x8000u : 0;
    if (isnan(value)) {
        return (uint16_t)(sign | f->infinity | 1u << (f->fraction - 1));
    }
    if (isinf(value)) {
        return sign | f->infinity;
    }
    if (magnitude < ldexp(1, f->least)) {
        // Multiples of the smallest denormal; the largest may round up to the smallest normal.
        return (uint16_t)(sign | (unsigned)nearbyint(ldexp(magnitude, f->fraction - f->least)));
    }
    uint64_t bits;
    memcpy(&bits, &magnitude, sizeof(bits));
    // Exponent and fraction are one number, into which a rounding carries.
    const unsigned cut = (unsigned)(DOUBLE_FRACTION - f->fraction);
    bits += ((UINT64_C(1) << (cut - 1)) - 1) + (bits >> cut & 1);
    bits = (bits >> cut) - ((uint64_t)(DOUBLE_BIAS + f->least - 1) << f->fraction);
    return (uint16_t)(sign | (bits < f->infinity ? bits : (uint64_t)f->infinity - 1));
}
