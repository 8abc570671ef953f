/// Attention heads whose weights are made, not learned, so that what they look at is known
/// beforehand: for `mhabench attend`, which shows what the kernels make of them.
#ifndef MHA_ATTEND_HEADS_H
#define MHA_ATTEND_HEADS_H

#include <stdbool.h>
#include <stddef.h>

#include "op.h"
#include "words.h"

/// A head of d_model: its width is the model's.
struct attend_head {
    const char *name;
    const char *summary;  ///< One line: what it looks at, and by what.
    size_t width;
    size_t words;             ///< 0: takes any text.
    const char *const *text;  ///< [words]: the only text that it takes.
    /// Fills the input X [tokens, width].
    void (*input)(const struct attend_head *head, const struct string_list *tokens,
                  const struct tensor *x);
    /// Fills W_Q and W_K: the first and the second `width` columns of w, which is zero before.
    void (*weights)(const struct attend_head *head, const struct tensor *w);
    double gain;              ///< Of the scores, for heads of any text.
    size_t back;              ///< Tokens that the head's gaze is shifted back.
    const unsigned *percent;  ///< [words][words], for heads of one text.
};

/// Gets a head; NULL behind the last one.
const struct attend_head *attend_head_get(size_t index);

/// Finds a head by its name; NULL when there is none.
const struct attend_head *attend_head_find(const char *name);

/// Gets a head's name by index, NULL behind the last one: for lists of words.
const char *attend_head_word(size_t index);

/// Tells whether the head takes this text.
bool attend_head_takes(const struct attend_head *head, const struct string_list *tokens);

/// Fills X [tokens, width] and W = (W_Q, W_K, W_V) [width, 3 width].
void attend_head_fill(const struct attend_head *head, const struct string_list *tokens,
                      const struct tensor *x, const struct tensor *w);

#endif
