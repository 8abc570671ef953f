#include "sparkline.h"

#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"

char *sparkline(const double *values, size_t count, bool unicode) {
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    // Ink that rises: what a line of ASCII can show of height.
    static const char *const ascii[] = {"_", ".", "-", "=", "+", "*", "#", "@"};
    enum { LEVELS = sizeof(blocks) / sizeof(blocks[0]), BAR_BYTES = 4 };
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i])) {
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
        }
    }
    char *text = diag_alloc(calloc(count + 1, BAR_BYTES));
    char *end = text;
    for (size_t i = 0; i < count; i++) {
        const char *bar = " ";
        if (isfinite(values[i])) {
            const double height = high > low ? (values[i] - low) / (high - low) : 0.0;
            const size_t level = (size_t)(height * LEVELS);
            bar = (unicode ? blocks : ascii)[level < LEVELS ? level : LEVELS - 1];
        }
        end = stpcpy(end, bar);
    }
    return text;
}

bool sparkline_unicode(int fd) {
    if (isatty(fd) != 1) {
        return false;
    }
    // The program itself stays in the C locale.
    const locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (locale == (locale_t)0) {
        return false;
    }
    const bool unicode = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return unicode;
}
