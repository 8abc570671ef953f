#include "report_text.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"

void text_locale_begin(struct text *text) {
    text->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (text->c_locale == (locale_t)0) {
        diag_alloc(NULL);
    }
    text->before = uselocale(text->c_locale);
}

void text_locale_end(struct text *text) {
    (void)uselocale(text->before);
    freelocale(text->c_locale);
}

void text_begin(struct text *text) {
    memset(text, 0, sizeof(*text));
    text_locale_begin(text);
    text->out = diag_alloc(open_memstream(&text->bytes, &text->length));
}

char *text_end(struct text *text) {
    const bool failed = ferror(text->out) != 0;
    if (fclose(text->out) != 0 || failed) {
        diag_alloc(NULL);
    }
    text_locale_end(text);
    return text->bytes;
}

void text_time(char text[TEXT_NUMBER_BYTES], double ns) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    if (!isfinite(ns)) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "-");
        return;
    }
    while (unit < 3 && ns >= 999.95) {
        ns /= 1000.0;
        unit++;
    }
    const int decimals = ns < 9.9995 ? 3 : ns < 99.995 ? 2 : ns < 999.95 ? 1 : 0;
    if (ns < 1e6) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%.*f %s", decimals, ns, units[unit]);
    } else {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%.3e %s", ns, units[unit]);
    }
}

/// Beyond this a change is no measurement, but what a test with one degree of freedom cannot
/// exclude.
#define TEXT_CHANGE_MAX 1000.0

void text_change(char text[TEXT_NUMBER_BYTES], double share) {
    if (!isfinite(share)) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "-");
    } else if (share >= TEXT_CHANGE_MAX) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, ">%.0fx", TEXT_CHANGE_MAX);
    } else if (fabs(share) < 10.0) {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%+.2f%%", 100.0 * share);
    } else {
        (void)snprintf(text, TEXT_NUMBER_BYTES, "%+.3g%%", 100.0 * share);
    }
}

void text_interval(char text[TEXT_INTERVAL_BYTES], double low, double high) {
    char from[TEXT_NUMBER_BYTES], to[TEXT_NUMBER_BYTES];
    text_change(from, low);
    text_change(to, high);
    if (isfinite(low) || isfinite(high)) {
        (void)snprintf(text, TEXT_INTERVAL_BYTES, "%s .. %s", from, to);
    } else {
        (void)snprintf(text, TEXT_INTERVAL_BYTES, "-");
    }
}

size_t text_character(const char *text) {
    const unsigned char *s = (const unsigned char *)text;
    // Table 3-7 of the Unicode Standard: no overlong forms, no surrogates, nothing above U+10FFFF.
    if (s[0] < 0x80) {
        return 1;
    }
    const size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    const unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[0] < 0xc2 || s[0] > 0xf4 || s[1] < least || s[1] > most) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

/// Tells whether the character is one of those above ASCII that command a terminal (C1) or turn the
/// direction of the text around it.
static bool is_hidden_control(const char *character, size_t length) {
    const unsigned char *s = (const unsigned char *)character;
    return (length == 2 && s[0] == 0xc2 && s[1] < 0xa0) ||
           (length == 3 && s[0] == 0xe2 &&
            ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
             (s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)));
}

void text_put_plain(FILE *out, const char *text) {
    while (*text != '\0') {
        const size_t length = text_character(text);
        if (length == 0 || (length == 1 && iscntrl((unsigned char)*text)) ||
            is_hidden_control(text, length)) {
            (void)fputc('?', out);
        } else {
            (void)fwrite(text, 1, length, out);
        }
        text += length > 0 ? length : 1;
    }
}

void text_put_xml(FILE *out, const char *text) {
    while (*text != '\0') {
        const size_t length = text_character(text);
        const unsigned char c = (unsigned char)*text;
        // U+FFFE and U+FFFF are no characters of XML 1.0 (section 2.2).
        const bool none = length == 0 || (c < ' ' && c != '\t' && c != '\n' && c != '\r') ||
                          memcmp(text, "\xef\xbf\xbe", length) == 0 ||
                          memcmp(text, "\xef\xbf\xbf", length) == 0;
        if (none) {
            (void)fputs("\xef\xbf\xbd", out);
        } else if (c == '&') {
            (void)fputs("&amp;", out);
        } else if (c == '<') {
            (void)fputs("&lt;", out);
        } else if (c == '>') {
            (void)fputs("&gt;", out);
        } else if (c == '"') {
            (void)fputs("&quot;", out);
        } else if (c < ' ' || c == 0x7f) {
            // An attribute would turn these into spaces.
            (void)fprintf(out, "&#%d;", c);
        } else {
            (void)fwrite(text, 1, length, out);
        }
        text += length > 0 ? length : 1;
    }
}

void text_put_markdown(FILE *out, const char *text, size_t most) {
    // Zero-width space: keeps GitHub from seeing a mention (@name), a reference (#1) or a link.
    static const char breaker[] = "&#8203;";
    size_t used = 0;
    while (*text != '\0') {
        const size_t length = text_character(text);
        const unsigned char c = (unsigned char)*text;
        char piece[24];
        if (length == 0 || is_hidden_control(text, length)) {
            (void)snprintf(piece, sizeof(piece), "?");
        } else if (length > 1) {
            (void)snprintf(piece, sizeof(piece), "%.*s", (int)length, text);
        } else if (iscntrl(c)) {
            (void)snprintf(piece, sizeof(piece), " ");
        } else if (c == '@' || c == '#') {
            (void)snprintf(piece, sizeof(piece), "&#%d;%s", c, breaker);
        } else if (c == ':' && text[1] == '/' && text[2] == '/') {
            (void)snprintf(piece, sizeof(piece), ":%s", breaker);
        } else if (c == '.' && used >= 3 && strncasecmp(text - 3, "www", 3) == 0) {
            (void)snprintf(piece, sizeof(piece), ".%s", breaker);
        } else if (ispunct(c) && strchr("/:.,;%=+-()?'", c) == NULL) {
            (void)snprintf(piece, sizeof(piece), c == '_' ? "\\%c" : "&#%d;", c);
        } else {
            (void)snprintf(piece, sizeof(piece), "%c", c);
        }
        if (used + strlen(piece) > most) {
            (void)fputs("...", out);
            return;
        }
        (void)fputs(piece, out);
        used += strlen(piece);
        text += length > 0 ? length : 1;
    }
}

/// The order of importance.
static const enum comparison_verdict importance[TEXT_VERDICTS] = {
    COMPARISON_SLOWER, COMPARISON_ERROR, COMPARISON_MISSING,   COMPARISON_INCONCLUSIVE,
    COMPARISON_FASTER, COMPARISON_NEW,   COMPARISON_ENV_DRIFT, COMPARISON_SAME,
};

size_t text_importance(enum comparison_verdict verdict) {
    size_t place = 0;
    while (place + 1 < TEXT_VERDICTS && importance[place] != verdict) {
        place++;
    }
    return place;
}

enum comparison_verdict text_verdict_at(size_t place) {
    return importance[place];
}

static int compare_rows(const void *a, const void *b) {
    const struct comparison *x = *(const struct comparison *const *)a;
    const struct comparison *y = *(const struct comparison *const *)b;
    const size_t p = text_importance(x->verdict);
    const size_t q = text_importance(y->verdict);
    if (p != q) {
        return p < q ? -1 : 1;
    }
    // The largest change first, of FASTER the largest gain; what is not known last.
    const double sign = x->verdict == COMPARISON_FASTER ? -1.0 : 1.0;
    const double s = isnan(x->change) ? -(double)INFINITY : sign * x->change;
    const double t = isnan(y->change) ? -(double)INFINITY : sign * y->change;
    if (s < t || s > t) {
        return s > t ? -1 : 1;
    }
    return strcmp(x->name, y->name);
}

const struct comparison **text_order(const struct comparison_report *report) {
    const struct comparison **order = (const struct comparison **)diag_alloc(
        calloc(report->count + 1, sizeof(struct comparison *)));
    for (size_t i = 0; i < report->count; i++) {
        order[i] = &report->rows[i];
    }
    qsort((void *)order, report->count, sizeof(struct comparison *), compare_rows);
    return order;
}

void text_put_counts(FILE *out, const struct comparison_report *report) {
    (void)fprintf(out, "%zu %s", report->count, report->count == 1 ? "case" : "cases");
    const char *separator = ": ";
    for (size_t place = 0; place < TEXT_VERDICTS; place++) {
        size_t count = 0;
        for (size_t i = 0; i < report->count; i++) {
            count += report->rows[i].verdict == importance[place];
        }
        if (count > 0) {
            (void)fprintf(out, "%s%zu %s", separator, count, comparison_text(importance[place]));
            separator = ", ";
        }
    }
}

const char *text_shape(const char *name, const char *kernel) {
    const char *shape = name;
    for (int i = 0; i < 3; i++) {
        const char *slash = strchr(shape, '/');
        if (slash == NULL || kernel[0] == '\0') {
            return name;
        }
        shape = slash + 1;
    }
    return shape;
}

/// Room for the lines about what was cut: two numbers of 20 digits and a count for each category.
enum { CUT_BYTES = 480 };

static void put_cut(FILE *out, const struct text_markdown *parts, size_t shown) {
    (void)fprintf(out, "\n%zu more rows did not fit:", parts->count - shown);
    const char *separator = " ";
    for (size_t i = shown; i < parts->count;) {
        size_t count = 0;
        const char *category = parts->categories[i];
        for (; i < parts->count && strcmp(parts->categories[i], category) == 0; i++) {
            count++;
        }
        (void)fprintf(out, "%s%zu %s", separator, count, category);
        separator = ", ";
    }
    (void)fputs(".\n", out);
}

char *text_markdown(const struct text_markdown *parts, size_t most) {
    struct text text;
    text_begin(&text);
    (void)fputs(parts->summary, text.out);
    size_t used = strlen(parts->summary) + strlen(parts->table_head) + CUT_BYTES;
    // Notes may take a third of what is left: without rows they would be about nothing.
    size_t left = most > used ? (most - used) / 3 : 0;
    size_t notes = 0;
    while (notes < parts->notes && strlen(parts->note[notes]) <= left) {
        (void)fputs(parts->note[notes], text.out);
        left -= strlen(parts->note[notes]);
        used += strlen(parts->note[notes]);
        notes++;
    }
    if (notes < parts->notes) {
        (void)fprintf(text.out, "- %zu more notes did not fit.\n", parts->notes - notes);
    }
    size_t shown = 0;
    if (parts->count > 0) {
        (void)fputs(parts->table_head, text.out);
    }
    while (shown < parts->count && used + strlen(parts->rows[shown]) <= most) {
        (void)fputs(parts->rows[shown], text.out);
        used += strlen(parts->rows[shown]);
        shown++;
    }
    if (shown < parts->count) {
        put_cut(text.out, parts, shown);
    }
    return text_end(&text);
}
