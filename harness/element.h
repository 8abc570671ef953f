/// Element types of tensors: what they are called, how long they are, and how a narrow one becomes
/// a float and is made of a number.
#ifndef MHA_ELEMENT_H
#define MHA_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// f32 is IEEE binary32, f16 IEEE binary16; bf16 is the upper half of a binary32.
enum element { ELEMENT_F32, ELEMENT_BF16, ELEMENT_F16, ELEMENT_COUNT };

/// Gets the word that names a type ("f32", "bf16", "f16"), in static storage; NULL behind the last.
const char *element_word(size_t element);

/// Finds the type of a word; ELEMENT_COUNT when it is none.
enum element element_find(const char *word);

/// Gets the bytes of one element.
size_t element_bytes(enum element element);

/// Largest finite value of a type.
double element_max(enum element element);

/// Smallest normal value of a type, a power of two.
float element_smallest(enum element element);

/// Converts an element of two bytes to the float of the same value; a NaN to a NaN.
float element_widen(enum element element, uint16_t bits);

/// Rounds to the nearest element of two bytes, ties to even, with denormals. A number beyond the
/// largest finite one becomes that one; infinities stay, a NaN becomes a quiet one.
uint16_t element_narrow(enum element element, double value);

#endif
