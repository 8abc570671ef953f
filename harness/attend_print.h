/// What `mhabench attend` shows in a terminal.
#ifndef MHA_ATTEND_PRINT_H
#define MHA_ATTEND_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "words.h"

/// Prints a matrix of weights in per cent, rows for queries and columns for keys: `weights` is
/// [tokens][tokens], NAN for what is none. Of a causal matrix the keys ahead are dots. `width` is
/// that of the terminal: long words are cut, and columns that still do not fit go into further
/// blocks; 0: no limit. With `color` the cells are shaded.
void attend_print(FILE *out, const struct string_list *tokens, const double *weights, bool causal,
                  size_t width, bool color);

#endif
