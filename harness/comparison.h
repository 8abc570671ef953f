/// What comparing two builds or two result files yields, whatever way it was found out: one row per
/// case, and what is true of all rows. `ab`, `compare` and `history` make it; report.h prints it.
#ifndef MHA_COMPARISON_H
#define MHA_COMPARISON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum comparison_verdict {
    COMPARISON_SAME,  ///< No slower and no faster than the floor, and sure of it.
    COMPARISON_FASTER,
    COMPARISON_SLOWER,
    COMPARISON_INCONCLUSIVE,  ///< The data cannot tell; smallest_effect says what it could have
                              ///< seen.
    COMPARISON_ENV_DRIFT,     ///< The times differ, the machine code does not.
    COMPARISON_MISSING,       ///< Only in the base.
    COMPARISON_NEW,           ///< Only in the new one.
    COMPARISON_ERROR,         ///< One side has no time that counts, or a time of 0.
};

/// One case. A number that is not known is NAN (null in JSON); changes are new / base - 1, so that
/// +0.03 is 3 % slower.
struct comparison {
    char *name;              ///< Case name; the new one's where both exist.
    char *old_name;          ///< The base's, when the case was renamed; else NULL.
    char *kernel, *op;       ///< For grouping; "" when not known (plain Google Benchmark files).
    double base_ns, new_ns;  ///< Medians.
    double change;           ///< Estimate.
    double low, high;        ///< Interval of the change, at the report's confidence.
    double smallest_effect;  ///< Smallest change that this row's data would have shown as SLOWER.
    size_t launches;         ///< Pairs of launches (ab), or the smaller side's launches (compare).
    bool same_code;          ///< Equal code hashes, both known.
    enum comparison_verdict verdict;
    char *reason;  ///< One line, or NULL.
};

enum comparison_gate { GATE_SLOWER, GATE_INCONCLUSIVE, GATE_NONE };

/// All rows, and how they were judged.
struct comparison_report {
    char *command;  ///< "ab", "compare" or "history".
    char *base_label, *new_label;
    json_t *base_context, *new_context;  ///< Contexts of the result files, or NULL.
    double floor;        ///< Changes up to this are not worth a verdict (0.01 = 1 %).
    double error_rate;   ///< False discovery rate that the verdicts hold.
    double noise_floor;  ///< Largest change seen among rows of equal code; NAN without such rows.
    char *method;        ///< One line: the test, its correction, its source.
    size_t notes;
    char **note;  ///< What a reader must know (launch floor added, units converted, ...).
    size_t count;
    struct comparison *rows;
};

/// Gets the verdict's word ("ENV-DRIFT").
const char *comparison_text(enum comparison_verdict verdict);

/// Gets the exit code of the whole report: SLOWER, ERROR, MISSING -> 1; INCONCLUSIVE -> 3 under
/// GATE_INCONCLUSIVE; 0 else, and always under GATE_NONE.
int comparison_exit(const struct comparison_report *report, enum comparison_gate gate);

void comparison_free(struct comparison_report *report);

#endif
