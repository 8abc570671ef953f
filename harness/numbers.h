/// Numbers as users write them: whole numbers, lists and ranges of them, and seconds. Independent
/// of the locale; anything behind a number is an error.
#ifndef MHA_NUMBERS_H
#define MHA_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// A growing list of sizes.
struct size_list {
    size_t count;
    size_t *items;
};

void size_list_add(struct size_list *list, size_t value);

void size_list_free(struct size_list *list);

/// Longest list that one option may name; a sweep beyond it is a slip (--seq 1:16777216:+1).
enum { LIST_VALUES_MAX = 4096 };

/// Room for what the parsers say is wrong.
enum { WHY_BYTES = 320 };

enum number_fault { NUMBER_FINE, NUMBER_NONE, NUMBER_NEGATIVE, NUMBER_LARGE };

/// Reads `length` digits. NUMBER_LARGE: does not fit 64 bits.
enum number_fault number_parse(const char *text, size_t length, uint64_t *value);

/// Appends the values of a list "1,12,96" whose elements are numbers or ranges "64:512:x2",
/// "64:512:+64" (first, bound, step; the bound counts when it is hit), each from `min` to `max`.
/// The word `all`, when not NULL, stands for SIZE_MAX. False: `why` says what is wrong and what
/// would be right, and the list may hold a part.
bool sizes_parse(struct size_list *list, const char *text, size_t min, size_t max, const char *all,
                 char why[WHY_BYTES]);

/// Reads a plain number of seconds: digits with '.' and a decimal exponent, no unit, no sign, no
/// infinity.
bool seconds_parse(const char *text, double *seconds);

#endif
