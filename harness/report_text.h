/// What the forms of a report share: a text in the C locale, numbers as people read them, escapes.
#ifndef MHA_REPORT_TEXT_H
#define MHA_REPORT_TEXT_H

#include <locale.h>
#include <stddef.h>
#include <stdio.h>

#include "comparison.h"

/// A text that grows in memory. Between text_begin() and text_end() the thread is in the C locale:
/// others write 1,5.
struct text {
    FILE *out;
    char *bytes;
    size_t length;
    locale_t before, c_locale;
};

void text_begin(struct text *text);

/// Gets the text, to be freed.
char *text_end(struct text *text);

/// Switches to the C locale and back, for output that needs no buffer.
void text_locale_begin(struct text *text);
void text_locale_end(struct text *text);

enum { TEXT_NUMBER_BYTES = 40, TEXT_INTERVAL_BYTES = 2 * TEXT_NUMBER_BYTES + 4 };

/// The next three want the C locale.

/// Writes a time with four digits and its unit ("12.35 us"); "-" when it is not finite.
void text_time(char text[TEXT_NUMBER_BYTES], double ns);

/// Writes a share as signed per cent ("+3.10%"); "-" when it is not finite.
void text_change(char text[TEXT_NUMBER_BYTES], double share);

/// Writes an interval of changes; "-" when it is not known.
void text_interval(char text[TEXT_INTERVAL_BYTES], double low, double high);

/// Gets the bytes of the UTF-8 character at `text`; 0 when they are none.
size_t text_character(const char *text);

/// Writes for a terminal: control characters, which could rewrite it, become question marks.
void text_put_plain(FILE *out, const char *text);

/// Writes for XML 1.0, attribute or text: what it cannot hold becomes U+FFFD.
void text_put_xml(FILE *out, const char *text);

/// Writes at most `most` bytes of a text for a cell of a markdown table, so that nothing in it is
/// markup, a mention or a link; a longer one ends in "...".
void text_put_markdown(FILE *out, const char *text, size_t most);

/// Gets the place of a verdict in the order of importance; 0 is the most important.
size_t text_importance(enum comparison_verdict verdict);

/// Number of verdicts, and the verdict at a place.
enum { TEXT_VERDICTS = COMPARISON_ERROR + 1 };
enum comparison_verdict text_verdict_at(size_t place);

/// Gets pointers to the rows, the most important first; to be freed.
const struct comparison **text_order(const struct comparison_report *report);

/// Writes how many rows have each verdict: "61 cases: 1 SLOWER, 60 SAME".
void text_put_counts(FILE *out, const struct comparison_report *report);

/// Gets the part of a case name behind op, dtype and kernel; the whole name when it is none of
/// ours.
const char *text_shape(const char *name, const char *kernel);

/// What a markdown report consists of. Texts are made; assemble frees nothing.
struct text_markdown {
    const char *summary;     ///< Heading and counts; always there.
    const char *table_head;  ///< The two lines above the rows.
    size_t notes;
    char **note;  ///< Lines below the summary.
    size_t count;
    char **rows;              ///< The most important first.
    const char **categories;  ///< [count] what a row that is cut counts as; equal texts, equal
                              ///< pointers.
};

/// Puts a report together in at most `most` bytes, to be freed.
char *text_markdown(const struct text_markdown *parts, size_t most);

#endif
