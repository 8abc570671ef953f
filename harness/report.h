/// A comparison, or one result, in every form that people and their tools read. All texts are the
/// same in every locale, and whatever stands in a file that was read is escaped as the form wants
/// it. A text that is returned is UTF-8 and to be freed.
#ifndef MHA_REPORT_H
#define MHA_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "comparison.h"
#include "options.h"
#include "results.h"

/// Grows by one with every change that an old reader of report_json() would misread.
enum { REPORT_SCHEMA_VERSION = 1 };

/// What fits into a GitHub step summary, in bytes; the limit where none is given.
enum { REPORT_SUMMARY_BYTES = 1024 * 1024 };

/// Prints the comparison as the options say (--json, --markdown, --junit, --github-action-benchmark
/// or the terminal table; on stdout or to --out FILE). Returns EXIT_USAGE after a message when it
/// cannot be written, and EXIT_DONE else: the verdicts are comparison_exit()'s.
int report_print(const struct comparison_report *report, const struct options *options);

/// Prints one result likewise.
int report_print_result(const struct result *result, const struct options *options);

/// The terminal table, the most important rows first. `color`: escape codes may be used.
void report_table(const struct comparison_report *report, FILE *out, bool color);

/// The whole comparison as JSON, from which report_from_json() makes it again. What is not finite
/// is null.
json_t *report_json(const struct comparison_report *report);

/// Tells whether a file's JSON is what report_json() makes.
bool report_is_json(const json_t *root);

/// Reads what report_json() made. On failure writes what is wrong to `why`, leaves the report empty
/// and returns false.
bool report_from_json(const json_t *root, struct comparison_report *report, char *why,
                      size_t why_bytes);

/// A table in GitHub's markdown, worst first, of at most `max_bytes` bytes (2000 at least; 0: a
/// step summary's). What does not fit is cut from the least important end: rows stand in the
/// order SLOWER, ERROR, MISSING, INCONCLUSIVE, FASTER, NEW, ENV-DRIFT, SAME, and the number of
/// those that were cut is told.
char *report_markdown(const struct comparison_report *report, size_t max_bytes);
char *report_result_markdown(const struct result *result, size_t max_bytes);

/// JUnit XML, one test case per row: SLOWER and MISSING are failures, ERROR is an error,
/// INCONCLUSIVE is skipped, or a failure where the gate is on it.
char *report_junit(const struct comparison_report *report, enum comparison_gate gate);
char *report_result_junit(const struct result *result);

/// An array for github-action-benchmark's tool customSmallerIsBetter, all times in ns: one entry
/// for each row that has a time now.
json_t *report_gab(const struct comparison_report *report);
json_t *report_result_gab(const struct result *result);

/// Writes a finished text, or JSON, to --out or stdout, and frees it. Prints one line and returns
/// EXIT_USAGE when it cannot be written.
int report_write_text(char *text, const struct options *options);
int report_write_json(json_t *json, const struct options *options);

#endif
