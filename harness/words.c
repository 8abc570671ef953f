#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

void string_list_add(struct string_list *list, const char *text, size_t length) {
    list->items = diag_alloc(realloc(list->items, (list->count + 1) * sizeof(char *)));
    list->items[list->count] = diag_alloc(strndup(text, length));
    list->count++;
}

void string_list_free(struct string_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct string_list){0};
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/// Optimal string alignment by recursion; `budget` bounds depth and breadth.
static size_t distance_within(const char *a, const char *b, size_t budget) {
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    if (*a == '\0' && *b == '\0') {
        return 0;
    }
    if (budget == 0) {
        return 1;
    }
    size_t best = budget;
    if (*a != '\0') {
        best = smaller(best, distance_within(a + 1, b, budget - 1));
    }
    if (*b != '\0') {
        best = smaller(best, distance_within(a, b + 1, budget - 1));
    }
    if (*a != '\0' && *b != '\0') {
        best = smaller(best, distance_within(a + 1, b + 1, budget - 1));
        if (a[0] == b[1] && a[1] == b[0]) {
            best = smaller(best, distance_within(a + 2, b + 2, budget - 1));
        }
    }
    return best + 1;
}

size_t words_distance(const char *a, const char *b) {
    return distance_within(a, b, WORDS_NEAR);
}

const char *words_nearest(const char *word, word_fn *known) {
    const char *nearest = NULL;
    size_t best = WORDS_NEAR + 1;
    for (size_t i = 0;; i++) {
        const char *candidate = known(i);
        if (candidate == NULL) {
            return nearest;
        }
        const size_t distance = words_distance(word, candidate);
        // "foo" is two edits from "op", and so is every word of two letters.
        if (distance < best && distance < strlen(candidate)) {
            best = distance;
            nearest = candidate;
        }
    }
}

void words_join(char *text, size_t size, word_fn *known) {
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0;; i++) {
        const char *word = known(i);
        if (word == NULL || length >= size) {
            return;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "", word);
    }
}
