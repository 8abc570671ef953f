#include "attend_heads.h"

#include <math.h>
#include <string.h>

#include "position_tables.h"
#include "word_table.h"

/// Heads that take any text see a word's vector and its place side by side: the vector in the first
/// columns of X, the sinusoids of its position in the others.
enum { PLACE_LENGTH = 64, ANY_WIDTH = WORD_VECTOR_LENGTH + PLACE_LENGTH };

static float *at(const struct tensor *t, size_t row, size_t col) {
    return tensor_row(t, 0, row) + col;
}

/// What the qk op multiplies scores by is taken back in W_Q: the score is then what the head's own
/// formula says.
static double unscaled(const struct attend_head *head) {
    return sqrt((double)head->width);
}

/// W_K or W_V is the identity.
static void put_identity(const struct tensor *w, size_t first_col, size_t first, size_t count) {
    for (size_t i = first; i < first + count; i++) {
        *at(w, i, first_col + i) = 1.0f;
    }
}

static void words_and_places(const struct attend_head *head, const struct string_list *tokens,
                             const struct tensor *x) {
    (void)head;
    for (size_t t = 0; t < tokens->count; t++) {
        word_vector(tokens->items[t], at(x, t, 0));
    }
    position_sinusoid(0, tokens->count, PLACE_LENGTH, at(x, 0, WORD_VECTOR_LENGTH), x->row_stride);
}

/// The score is gain times the cosine of the words' vectors, which have length 1.
static void weigh_words(const struct attend_head *head, const struct tensor *w) {
    for (size_t i = 0; i < WORD_VECTOR_LENGTH; i++) {
        *at(w, i, i) = (float)(head->gain * unscaled(head));
    }
    put_identity(w, head->width, 0, WORD_VECTOR_LENGTH);
}

/// PE(pos + k) is a rotation of PE(pos), the same for every pos: pair i is turned by k times its
/// frequency w_i = 10000^(-2i/d) (Vaswani et al. 2017, arXiv:1706.03762, section 3.5). W_Q turns
/// every query back by `back` positions, so that the score is gain * sum_i cos(w_i (pos - back -
/// key)): largest where key = pos - back, and falling off with the distance from there.
static void weigh_places(const struct attend_head *head, const struct tensor *w) {
    const double factor = head->gain * unscaled(head);
    for (size_t i = 0; i < PLACE_LENGTH; i += 2) {
        const double frequency = pow(10000.0, -(double)i / PLACE_LENGTH);
        const double angle = frequency * (double)head->back;
        const size_t sine = WORD_VECTOR_LENGTH + i, cosine = sine + 1;
        *at(w, sine, sine) = (float)(factor * cos(angle));
        *at(w, cosine, sine) = (float)(-factor * sin(angle));
        *at(w, sine, cosine) = (float)(factor * sin(angle));
        *at(w, cosine, cosine) = (float)(factor * cos(angle));
    }
    put_identity(w, head->width, WORD_VECTOR_LENGTH, PLACE_LENGTH);
}

/// Learned positions in their simplest form: one coordinate each.
static void one_hot(const struct attend_head *head, const struct string_list *tokens,
                    const struct tensor *x) {
    (void)head;
    for (size_t t = 0; t < tokens->count; t++) {
        *at(x, t, t) = 1.0f;
    }
}

/// W_Q W_K^T holds the logarithms of the weights, which softmax undoes: their sum is 1 in every
/// row. None is 0, so that each has a logarithm.
static void weigh_percent(const struct attend_head *head, const struct tensor *w) {
    for (size_t i = 0; i < head->words; i++) {
        for (size_t j = 0; j < head->words; j++) {
            const double share = (double)head->percent[i * head->words + j] / 100.0;
            *at(w, i, j) = (float)(unscaled(head) * log(share));
        }
    }
    put_identity(w, head->width, 0, head->words);
}

// The weights that two heads of a trained model are printed with, in per cent: rows are queries.
enum { PRINTED_WORDS = 4 };
static const char *const fox_text[PRINTED_WORDS] = {"The", "clever", "fox", "jumped"};
static const char *const movie_text[PRINTED_WORDS] = {"I", "saw", "the", "movie"};
static const unsigned fox_percent[PRINTED_WORDS * PRINTED_WORDS] = {
    50, 35, 10, 5,   // The
    30, 45, 20, 5,   // clever
    8,  32, 45, 15,  // fox
    5,  10, 35, 50,  // jumped
};
static const unsigned movie_percent[PRINTED_WORDS * PRINTED_WORDS] = {
    80, 10, 5,  5,   // I
    70, 20, 5,  5,   // saw
    10, 75, 10, 5,   // the
    5,  10, 75, 10,  // movie
};

// Gains of heads by place: the sum of the cosines is 32 at its maximum and less by 1.1 one position
// beside it. 4 leaves a neighbour e^-4.5 = 1 % of the maximum, 0.5 leaves it 58 %, and the next 16
// %. By words, 5 leaves those of the same topics e^(5 * 0.81 - 5) = 39 % of the word itself, and
// unrelated ones 1 %.
static const struct attend_head heads[] = {
    {.name = "previous-token",
     .summary = "the token before: sinusoids, turned back by one position",
     .width = ANY_WIDTH,
     .input = words_and_places,
     .weights = weigh_places,
     .gain = 4.0,
     .back = 1},
    {.name = "positional",
     .summary = "tokens nearby: the product of sinusoids falls off with the distance",
     .width = ANY_WIDTH,
     .input = words_and_places,
     .weights = weigh_places,
     .gain = 0.5},
    {.name = "identity",
     .summary = "the token itself: the product of sinusoids, sharply",
     .width = ANY_WIDTH,
     .input = words_and_places,
     .weights = weigh_places,
     .gain = 4.0},
    {.name = "semantic",
     .summary = "related words: vectors of a small table made by hand",
     .width = ANY_WIDTH,
     .input = words_and_places,
     .weights = weigh_words,
     .gain = 5.0},
    {.name = "seed-positional",
     .summary = "printed weights, looking nearby: logarithms over one-hot positions",
     .width = PRINTED_WORDS,
     .words = PRINTED_WORDS,
     .text = fox_text,
     .input = one_hot,
     .weights = weigh_percent,
     .percent = fox_percent},
    {.name = "seed-previous-token",
     .summary = "printed weights, looking one back: logarithms over one-hot positions",
     .width = PRINTED_WORDS,
     .words = PRINTED_WORDS,
     .text = movie_text,
     .input = one_hot,
     .weights = weigh_percent,
     .percent = movie_percent},
};

const struct attend_head *attend_head_get(size_t index) {
    return index < sizeof(heads) / sizeof(heads[0]) ? &heads[index] : NULL;
}

const struct attend_head *attend_head_find(const char *name) {
    for (size_t i = 0; attend_head_get(i) != NULL; i++) {
        if (strcmp(attend_head_get(i)->name, name) == 0) {
            return attend_head_get(i);
        }
    }
    return NULL;
}

const char *attend_head_word(size_t index) {
    return attend_head_get(index) != NULL ? attend_head_get(index)->name : NULL;
}

bool attend_head_takes(const struct attend_head *head, const struct string_list *tokens) {
    bool same = head->words == 0 || head->words == tokens->count;
    for (size_t i = 0; same && i < head->words; i++) {
        same = strcmp(head->text[i], tokens->items[i]) == 0;
    }
    return same;
}

void attend_head_fill(const struct attend_head *head, const struct string_list *tokens,
                      const struct tensor *x, const struct tensor *w) {
    for (size_t t = 0; t < tokens->count; t++) {
        memset(at(x, t, 0), 0, head->width * sizeof(float));
    }
    for (size_t i = 0; i < head->width; i++) {
        memset(at(w, i, 0), 0, 3 * head->width * sizeof(float));
    }
    head->input(head, tokens, x);
    head->weights(head, w);
    put_identity(w, 2 * head->width, 0, head->width);
}
