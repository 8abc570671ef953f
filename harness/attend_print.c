#include "attend_print.h"

#include <math.h>

#include "tokens.h"

/// Columns of a cell's number ("100"), of the longest row label, and of the longest column label
/// where there is room.
enum { CELL_LEAST = 3, ROW_LABEL_MOST = 16, CELL_MOST = 12 };

struct view {
    FILE *out;
    const struct string_list *tokens;
    const double *weights;
    bool causal;
    bool color;
    size_t label;      ///< Columns of the row labels.
    size_t cell_most;  ///< Columns that a column label may have.
};

static size_t min_of(size_t a, size_t b) {
    return a < b ? a : b;
}

/// Columns of a cell, without the gap before it.
static size_t cell_width(const struct view *v, size_t col) {
    const size_t wanted = tokens_columns(v->tokens->items[col]);
    return wanted < CELL_LEAST ? CELL_LEAST : min_of(wanted, v->cell_most);
}

/// Prints a word in `columns` columns: cut, with a mark, or padded.
static void print_word(const struct view *v, const char *word, size_t columns, bool right) {
    const size_t wanted = tokens_columns(word);
    const bool cut = wanted > columns;
    const size_t bytes = tokens_cut(word, cut ? columns - 1 : columns);
    size_t pad = columns;
    if (cut) {
        // A wide character may leave a column over.
        size_t used = 0;
        while (used < columns && tokens_cut(word, used) < bytes) {
            used++;
        }
        pad = columns - 1 - used;
    } else {
        pad = columns - wanted;
    }
    fprintf(v->out, "%*s%.*s%s%*s", right ? (int)pad : 0, "", (int)bytes, word, cut ? "~" : "",
            right ? 0 : (int)pad, "");
}

/// Background and foreground of a weight: nine steps from dark blue to yellow, in the colour cube
/// of 256-colour terminals.
static void print_shade(const struct view *v, double weight) {
    static const int backgrounds[] = {17, 18, 19, 25, 31, 37, 72, 149, 226};
    enum { STEPS = sizeof(backgrounds) / sizeof(backgrounds[0]), FIRST_LIGHT = 5 };
    if (!isfinite(weight) || weight < 0.005) {
        return;
    }
    const int step = (int)fmin(STEPS - 1, floor(weight * STEPS));
    fprintf(v->out, "\033[48;5;%d;38;5;%dm", backgrounds[step], step < FIRST_LIGHT ? 231 : 16);
}

static void print_cell(const struct view *v, size_t row, size_t col) {
    const double weight = v->weights[row * v->tokens->count + col];
    const int width = (int)cell_width(v, col);
    if (v->color) {
        print_shade(v, weight);
    }
    if (!isfinite(weight)) {
        fprintf(v->out, " %*s", width, "nan");
    } else if (v->causal && col > row && !(weight > 0 || weight < 0)) {
        fprintf(v->out, " %*s", width, ".");
    } else {
        // Half a per cent more is no reason to say -0.
        fprintf(v->out, " %*.0f", width, fabs(weight) < 0.005 ? 0.0 : 100.0 * weight);
    }
    if (v->color) {
        fputs("\033[0m", v->out);
    }
}

static void print_block(const struct view *v, size_t first, size_t end) {
    fprintf(v->out, "%*s", (int)v->label, "");
    for (size_t c = first; c < end; c++) {
        fputc(' ', v->out);
        print_word(v, v->tokens->items[c], cell_width(v, c), true);
    }
    fputc('\n', v->out);
    for (size_t r = 0; r < v->tokens->count; r++) {
        print_word(v, v->tokens->items[r], v->label, false);
        for (size_t c = first; c < end; c++) {
            print_cell(v, r, c);
        }
        fputc('\n', v->out);
    }
}

/// Columns of the whole matrix.
static size_t total_width(const struct view *v) {
    size_t total = v->label;
    for (size_t c = 0; c < v->tokens->count; c++) {
        total += 1 + cell_width(v, c);
    }
    return total;
}

void attend_print(FILE *out, const struct string_list *tokens, const double *weights, bool causal,
                  size_t width, bool color) {
    struct view v = {out, tokens, weights, causal, color, 1, CELL_MOST};
    for (size_t t = 0; t < tokens->count; t++) {
        const size_t columns = min_of(tokens_columns(tokens->items[t]), ROW_LABEL_MOST);
        v.label = columns > v.label ? columns : v.label;
    }
    while (width > 0 && v.cell_most > CELL_LEAST && total_width(&v) > width) {
        v.cell_most--;
    }
    for (size_t first = 0, end = 0; first < tokens->count; first = end) {
        // A block has one column at least, however narrow the terminal.
        size_t used = v.label;
        for (end = first; end < tokens->count; end++) {
            used += 1 + cell_width(&v, end);
            if (width > 0 && used > width && end > first) {
                break;
            }
        }
        if (first > 0) {
            fputc('\n', out);
        }
        print_block(&v, first, end);
    }
}
