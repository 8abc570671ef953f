#include "numbers.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

void size_list_add(struct size_list *list, size_t value) {
    list->items = diag_alloc(realloc(list->items, (list->count + 1) * sizeof(size_t)));
    list->items[list->count++] = value;
}

void size_list_free(struct size_list *list) {
    free(list->items);
    *list = (struct size_list){0};
}

enum number_fault number_parse(const char *text, size_t length, uint64_t *value) {
    const bool negative = length > 1 && text[0] == '-';
    bool large = false;
    uint64_t sum = 0;
    for (size_t i = negative ? 1 : 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return NUMBER_NONE;
        }
        const uint64_t digit = (uint64_t)(text[i] - '0');
        large = large || sum > (UINT64_MAX - digit) / 10;
        sum = sum * 10 + digit;
    }
    if (length == 0) {
        return NUMBER_NONE;
    }
    if (negative) {
        return NUMBER_NEGATIVE;
    }
    if (large) {
        return NUMBER_LARGE;
    }
    *value = sum;
    return NUMBER_FINE;
}

/// What a list may hold, and where to say what is wrong with it.
struct reader {
    struct size_list *list;
    size_t min, max;
    const char *all;
    char *why;
};

__attribute__((format(printf, 2, 3))) static bool wrong(const struct reader *reader,
                                                        const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, WHY_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

/// Longest piece of a user's word that is repeated in a message.
enum { QUOTED = 40 };

static int quoted(size_t length) {
    return length < QUOTED ? (int)length : QUOTED;
}

static bool read_number(const struct reader *reader, const char *text, size_t length,
                        size_t *number) {
    uint64_t value = 0;
    const enum number_fault fault = number_parse(text, length, &value);
    const char *all = reader->all != NULL ? ", or " : "";
    const char *word = reader->all != NULL ? reader->all : "";
    if (length == 0) {
        return wrong(reader, "a number is missing; give numbers from %zu to %zu%s%s", reader->min,
                     reader->max, all, word);
    }
    if (fault == NUMBER_NONE) {
        return wrong(reader, "%.*s is not a whole number; give numbers from %zu to %zu%s%s",
                     quoted(length), text, reader->min, reader->max, all, word);
    }
    if (fault == NUMBER_NEGATIVE || (fault == NUMBER_FINE && value < reader->min)) {
        return wrong(reader, "%.*s is too small; give numbers from %zu to %zu%s%s", quoted(length),
                     text, reader->min, reader->max, all, word);
    }
    if (fault == NUMBER_LARGE || value > reader->max) {
        return wrong(reader, "%.*s is too large; give numbers from %zu to %zu%s%s", quoted(length),
                     text, reader->min, reader->max, all, word);
    }
    *number = (size_t)value;
    return true;
}

static bool add(const struct reader *reader, size_t value) {
    if (reader->list->count >= LIST_VALUES_MAX) {
        return wrong(reader, "more than %d values; take a larger step", LIST_VALUES_MAX);
    }
    size_list_add(reader->list, value);
    return true;
}

/// Reads first:bound:step; `text` holds a colon.
static bool read_range(const struct reader *reader, const char *text, size_t length) {
    const char *end = text + length;
    const char *bound = (const char *)memchr(text, ':', length) + 1;
    const char *colon = memchr(bound, ':', (size_t)(end - bound));
    const size_t first_length = (size_t)(bound - 1 - text);
    const size_t bound_length = (size_t)((colon != NULL ? colon : end) - bound);
    size_t from = 0, to = 0;
    if (!read_number(reader, text, first_length, &from) ||
        !read_number(reader, bound, bound_length, &to)) {
        return false;
    }
    if (colon == NULL || colon + 1 == end) {
        return wrong(reader, "a range needs a step: %zu:%zu:x2 or %zu:%zu:+64", from, to, from, to);
    }
    const char *step = colon + 1;
    const size_t step_length = (size_t)(end - step);
    uint64_t by = 0;
    const enum number_fault fault = number_parse(step + 1, step_length - 1, &by);
    if ((*step != 'x' && *step != '+') || (fault != NUMBER_FINE && fault != NUMBER_LARGE)) {
        return wrong(reader, "the step %.*s is neither xN nor +N: %zu:%zu:x2 or %zu:%zu:+64",
                     quoted(step_length), step, from, to, from, to);
    }
    if (from > to) {
        return wrong(reader, "the range ends below its start; write %zu:%zu:%.*s", to, from,
                     quoted(step_length), step);
    }
    if (fault == NUMBER_LARGE) {
        by = UINT64_MAX;  // past every bound
    }
    if (*step == 'x' && by < 2) {
        return wrong(reader, "the factor of a range is at least 2: %zu:%zu:x2", from, to);
    }
    if (*step == '+' && by < 1) {
        return wrong(reader, "the step of a range is at least 1: %zu:%zu:+1", from, to);
    }
    if (*step == 'x' && from == 0) {
        return wrong(reader, "0 times any factor stays 0; start at 1, or step by +N");
    }
    for (size_t value = from;;) {
        if (!add(reader, value)) {
            return false;
        }
        if (*step == 'x' ? value > to / by : to - value < by) {
            return true;
        }
        value = *step == 'x' ? value * by : value + by;
    }
}

bool sizes_parse(struct size_list *list, const char *text, size_t min, size_t max, const char *all,
                 char why[WHY_BYTES]) {
    const struct reader reader = {list, min, max, all, why};
    why[0] = '\0';
    for (const char *start = text;;) {
        const size_t length = strcspn(start, ",");
        size_t number = 0;
        if (all != NULL && strlen(all) == length && memcmp(start, all, length) == 0) {
            if (!add(&reader, SIZE_MAX)) {
                return false;
            }
        } else if (memchr(start, ':', length) != NULL) {
            if (!read_range(&reader, start, length)) {
                return false;
            }
        } else if (!read_number(&reader, start, length, &number) || !add(&reader, number)) {
            return false;
        }
        if (start[length] == '\0') {
            return true;
        }
        start += length + 1;
    }
}

bool seconds_parse(const char *text, double *seconds) {
    // strtod() would take blanks, signs, hexadecimal, "inf" and "nan".
    const char *at = text + strspn(text, "0123456789");
    size_t digits = (size_t)(at - text);
    if (*at == '.') {
        const size_t behind = strspn(at + 1, "0123456789");
        digits += behind;
        at += 1 + behind;
    }
    if (digits == 0) {
        return false;
    }
    if (*at == 'e' || *at == 'E') {
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        const size_t exponent = strspn(at, "0123456789");
        if (exponent == 0) {
            return false;
        }
        at += exponent;
    }
    if (*at != '\0') {
        return false;
    }
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        return false;
    }
    const double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    if (!isfinite(value)) {
        return false;
    }
    *seconds = value;
    return true;
}
