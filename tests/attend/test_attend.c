/// The parts of `mhabench attend`: tokens, words as vectors, the weights of the heads, and the
/// matrix in a narrow terminal.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attend_heads.h"
#include "attend_print.h"
#include "tokens.h"
#include "word_table.h"

static void test_tokens(void **state) {
    (void)state;
    static const struct {
        const char *text, *joined;
    } cases[] = {
        {"The clever fox jumped", "The|clever|fox|jumped"},
        {"  Dog\tbites\nman.  ", "Dog|bites|man|."},
        {"didn't didn\u2019t well-known -x- 'tis", "didn't|didn\u2019t|well-known|-|x|-|'|tis"},
        {"(a,b)...", "(|a|,|b|)|.|.|."},
        {"\u00abl\u2019\u00e9t\u00e9\u00bb", "\u00ab|l\u2019\u00e9t\u00e9|\u00bb"},
        {"a\u00a0b\u3000c", "a|b|c"},
        {"\u732b\u304c\u3044\u308b", "\u732b|\u304c|\u3044|\u308b"},
        {"x1 3.5 snake_case", "x1|3|.|5|snake_case"},
        {"\U0001f600\U0001f600 e\u0301", "\U0001f600\U0001f600|e\u0301"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct string_list tokens = {0};
        char why[WHY_BYTES] = "", joined[400] = "";
        assert_true(tokens_split(&tokens, cases[i].text, why));
        for (size_t t = 0; t < tokens.count; t++) {
            strcat(joined, t > 0 ? "|" : "");
            strcat(joined, tokens.items[t]);
        }
        assert_string_equal(joined, cases[i].joined);
        string_list_free(&tokens);
    }
}

static void test_texts_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "no word"},
        {" \t\u00a0", "no word"},
        {"a \x80", "byte 2 is no UTF-8"},
        {"a \xc3", "byte 2 is no UTF-8"},
        {"\xc0\xaf", "byte 0 is no UTF-8"},          // an overlong '/'
        {"\xed\xa0\x80", "byte 0 is no UTF-8"},      // a surrogate
        {"\xf4\x90\x80\x80", "byte 0 is no UTF-8"},  // above U+10FFFF
        {"\xf8\x88\x80\x80\x80", "byte 0 is no UTF-8"},
        {"a\x1b[2J", "byte 1 begins a control character"},
        {"ab \u202e", "byte 3 begins a control character"},
        {"ab \xc2\x9b", "byte 3 begins a control character"},
        {"\x7f", "byte 0 begins a control character"},
        {"x\x08", "byte 1 begins a control character"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct string_list tokens = {0};
        char why[WHY_BYTES] = "";
        assert_false(tokens_split(&tokens, cases[i].text, why));
        assert_non_null(strstr(why, cases[i].part));
        string_list_free(&tokens);
    }
    char many[2 * (TOKENS_MAX + 1) + 1] = "";
    for (size_t i = 0; i < TOKENS_MAX + 1; i++) {
        memcpy(many + 2 * i, "x ", 3);
    }
    struct string_list tokens = {0};
    char why[WHY_BYTES] = "";
    assert_false(tokens_split(&tokens, many, why));
    assert_non_null(strstr(why, "more than 256"));
    string_list_free(&tokens);
    tokens = (struct string_list){0};
    assert_true(tokens_split(&tokens, many + 2, why));
    assert_int_equal(tokens.count, TOKENS_MAX);
    string_list_free(&tokens);
}

static void test_columns(void **state) {
    (void)state;
    assert_int_equal(tokens_columns("fox"), 3);
    assert_int_equal(tokens_columns("\u00e9t\u00e9"), 3);
    assert_int_equal(tokens_columns("e\u0301"), 1);
    assert_int_equal(tokens_columns("\u732b"), 2);
    assert_int_equal(tokens_cut("\u00e9t\u00e9", 2), 3);
    assert_int_equal(tokens_cut("\u732b\u732b", 3), 3);
    assert_int_equal(tokens_cut("e\u0301x", 1), 3);
    assert_int_equal(tokens_cut("fox", 9), 3);
}

static double product(const char *a, const char *b) {
    float x[WORD_VECTOR_LENGTH], y[WORD_VECTOR_LENGTH];
    double sum = 0;
    word_vector(a, x);
    word_vector(b, y);
    for (size_t i = 0; i < WORD_VECTOR_LENGTH; i++) {
        sum += (double)x[i] * (double)y[i];
    }
    return sum;
}

static void test_words(void **state) {
    (void)state;
    float vector[WORD_VECTOR_LENGTH];
    assert_true(word_vector("cat", vector));
    assert_true(word_vector("CAT", vector));
    assert_false(word_vector("catt", vector));
    assert_false(word_vector("", vector));
    static const char *const words[] = {"cat", "Paris", "xyzzy", "!", "\u732b", ""};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        // Length 1, to the rounding of 64 floats.
        assert_true(fabs(product(words[i], words[i]) - 1) <= 64 * 0x1p-23);
    }
    assert_true(product("cat", "Cat") >= product("cat", "cat"));
    static const struct {
        const char *word, *near, *far;
    } pairs[] = {
        {"cat", "dog", "river"},    {"bank", "river", "dog"},   {"bank", "money", "dog"},
        {"Paris", "France", "hot"}, {"hot", "cold", "France"},  {"it", "animal", "street"},
        {"movie", "film", "river"}, {"jumped", "ran", "movie"}, {"tired", "slept", "bank"},
        {"xyzzy", "xyzzy", "cat"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_true(product(pairs[i].word, pairs[i].near) > product(pairs[i].word, pairs[i].far));
        assert_true(product(pairs[i].word, pairs[i].near) > 0.3);
        assert_true(product(pairs[i].word, pairs[i].word) >= product(pairs[i].word, pairs[i].near));
    }
}

/// The heads' formula in double, from the X and W that the kernels get: no kernel is involved. In
/// *magnitude the same sum over the sizes of its terms.
static double score(const struct tensor *x, const struct tensor *w, size_t width, size_t i,
                    size_t j, double *magnitude) {
    double sum = 0;
    *magnitude = 0;
    for (size_t d = 0; d < width; d++) {
        double q = 0, k = 0, q_size = 0, k_size = 0;
        for (size_t e = 0; e < width; e++) {
            const double q_term = (double)tensor_row(x, 0, i)[e] * (double)tensor_row(w, 0, e)[d];
            const double k_term =
                (double)tensor_row(x, 0, j)[e] * (double)tensor_row(w, 0, e)[width + d];
            q += q_term;
            k += k_term;
            q_size += fabs(q_term);
            k_size += fabs(k_term);
        }
        sum += q * k;
        *magnitude += q_size * k_size;
    }
    *magnitude /= sqrt((double)width);
    return sum / sqrt((double)width);
}

static void test_heads(void **state) {
    (void)state;
    for (size_t h = 0; attend_head_get(h) != NULL; h++) {
        const struct attend_head *head = attend_head_get(h);
        struct string_list tokens = {0};
        char why[WHY_BYTES];
        assert_ptr_equal(attend_head_find(head->name), head);
        char text[100] = "one two three four five six seven eight";
        for (size_t i = 0; i < head->words; i++) {
            snprintf(i == 0 ? text : text + strlen(text), 50, "%s ", head->text[i]);
        }
        assert_true(tokens_split(&tokens, text, why));
        assert_true(attend_head_takes(head, &tokens));
        const size_t n = tokens.count, width = head->width;
        float *memory = calloc(n * width + 3 * width * width, sizeof(float));
        assert_non_null(memory);
        // What was there before must not matter.
        for (size_t i = 0; i < n * width + 3 * width * width; i++) {
            memory[i] = NAN;
        }
        const struct tensor x = {
            {"x", TENSOR_INPUT, 1, n, width, 0, 0, false, ELEMENT_F32}, memory, width, n * width};
        const struct tensor w = {{"w", TENSOR_INPUT, 1, width, 3 * width, 0, 0, false, ELEMENT_F32},
                                 memory + n * width,
                                 3 * width,
                                 3 * width * width};
        attend_head_fill(head, &tokens, &x, &w);
        for (size_t i = 0; i < n; i++) {
            for (size_t j = 0; j < n; j++) {
                double magnitude;
                const double got = score(&x, &w, width, i, j, &magnitude);
                assert_true(isfinite(got));
                double want = got;
                if (head->percent != NULL) {
                    want = log((double)head->percent[i * n + j] / 100.0);
                } else if (strcmp(head->name, "semantic") != 0) {
                    want = 0;
                    for (size_t f = 0; f < 32; f++) {
                        want += head->gain * cos(((double)i - (double)head->back - (double)j) *
                                                 pow(10000.0, -(double)f / 32));
                    }
                }
                // Two elements of X and two of W, each rounded once to a float, in every term; the
                // double arithmetic is far below the fifth.
                assert_true(fabs(got - want) <= 5 * 0x1p-24 * magnitude);
            }
        }
        free(memory);
        string_list_free(&tokens);
    }
    assert_null(attend_head_find("nope"));
}

/// Gets what is printed, to be freed.
static char *printed(const char *text, const double *weights, bool causal, size_t width,
                     bool color) {
    struct string_list tokens = {0};
    char why[WHY_BYTES], *out = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&out, &bytes);
    assert_non_null(file);
    assert_true(tokens_split(&tokens, text, why));
    attend_print(file, &tokens, weights, causal, width, color);
    fclose(file);
    string_list_free(&tokens);
    return out;
}

static size_t widest(const char *text) {
    size_t most = 0;
    for (; *text != '\0'; text += strcspn(text, "\n") + 1) {
        const size_t length = strcspn(text, "\n");
        most = length > most ? length : most;
    }
    return most;
}

static void test_print(void **state) {
    (void)state;
    const double weights[] = {0.5, 0.25, 0.25, 0.004, 0.006, 0.99, 1, 0, (double)NAN};
    char *all = printed("a bb extraordinary", weights, false, 0, false);
    assert_string_equal(all,
                        "                a  bb extraordina~\n"
                        "a              50  25           25\n"
                        "bb              0   1           99\n"
                        "extraordinary 100   0          nan\n");
    free(all);
    const double causal[] = {1, 0, 0.25, 0.75};
    all = printed("a bb", causal, true, 0, false);
    assert_string_equal(all, "     a  bb\na  100   .\nbb  25  75\n");
    free(all);
    // Narrower: labels are cut, then columns go below.
    all = printed("a bb extraordinary", weights, false, 30, false);
    assert_true(widest(all) == 30);
    assert_non_null(strstr(all, "~"));
    free(all);
    all = printed("a bb extraordinary", weights, false, 22, false);
    assert_true(widest(all) <= 22);
    assert_string_equal(all,
                        "                a  bb\n"
                        "a              50  25\n"
                        "bb              0   1\n"
                        "extraordinary 100   0\n"
                        "\n"
                        "              ex~\n"
                        "a              25\n"
                        "bb             99\n"
                        "extraordinary nan\n");
    free(all);
    // However narrow, every column is shown.
    all = printed("a bb extraordinary", weights, false, 1, false);
    assert_non_null(strstr(all, "ex~"));
    free(all);
    all = printed("a bb", causal, false, 0, true);
    assert_non_null(strstr(all, "\033[48;5;226;38;5;16m 100\033[0m"));
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),  cmocka_unit_test(test_texts_that_are_refused),
        cmocka_unit_test(test_columns), cmocka_unit_test(test_words),
        cmocka_unit_test(test_heads),   cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
