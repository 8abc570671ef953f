/// Text to tokens: words and punctuation, of UTF-8 in any script.
#ifndef MHA_TOKENS_H
#define MHA_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "numbers.h"
#include "words.h"

/// Most tokens of one text: a matrix of more is nothing that anyone reads.
enum { TOKENS_MAX = 256 };

/// Splits a text at white space into words and single punctuation marks. An apostrophe or hyphen
/// between letters belongs to the word ("didn't"); an ideograph or kana is a token of its own.
/// Returns false, and says in `why` what is wrong and where, when the text is no UTF-8, holds a
/// control character (which would rewrite the terminal), no token or too many; the list may then
/// hold a part.
bool tokens_split(struct string_list *tokens, const char *text, char why[WHY_BYTES]);

/// Gets the number of terminal columns that a token takes.
size_t tokens_columns(const char *token);

/// Gets the bytes of the longest start of a token that takes at most `columns` columns.
size_t tokens_cut(const char *token, size_t columns);

#endif
