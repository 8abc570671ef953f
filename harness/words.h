/// Words: lists of strings, and what a mistyped word may have meant.
#ifndef MHA_WORDS_H
#define MHA_WORDS_H

#include <stddef.h>

/// A growing list of strings that it owns.
struct string_list {
    size_t count;
    char **items;
};

/// Appends a copy of `length` bytes of `text`.
void string_list_add(struct string_list *list, const char *text, size_t length);

void string_list_free(struct string_list *list);

/// Gets a known word by index; NULL behind the last one.
typedef const char *word_fn(size_t index);

/// Largest distance that counts as a slip of the finger.
enum { WORDS_NEAR = 2 };

/// Counts the insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`;
/// anything above WORDS_NEAR counts as WORDS_NEAR + 1.
size_t words_distance(const char *a, const char *b);

/// Finds the known word that is nearest to `word`, at most WORDS_NEAR edits away and fewer than
/// its own length; NULL when there is none.
const char *words_nearest(const char *word, word_fn *known);

/// Writes all known words, separated by ", "; truncates to `size`.
void words_join(char *text, size_t size, word_fn *known);

#endif
