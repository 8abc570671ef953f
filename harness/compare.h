/// Two result files against each other: reading, matching, and the judgement of each case.
///
/// A launch is the unit of inference: samples of one process share its addresses, its pages and its
/// clock, so that more of them say nothing of the next process (Kalibera and Jones, Rigorous
/// benchmarking in reasonable time, 2013). Each launch counts with the median of its samples.
#ifndef MHA_COMPARE_H
#define MHA_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "comparison.h"

/// Launches from which on a side's own spread is taken at its word.
enum { COMPARE_LAUNCHES_ENOUGH = 6 };

/// One side of a case.
struct compare_side {
    size_t launches;
    double *log_ns;  ///< [launches] logarithm of the median of each.
    double within;   ///< Standard error of a launch's logarithm from its samples alone; 0: unknown.
    size_t within_df;  ///< Degrees of freedom of that.
};

/// A case that has times on both sides, and what is found of it.
struct compare_pair {
    const struct compare_side *base, *now;
    bool same_code;
    // found
    enum comparison_verdict verdict;
    double change, low, high, smallest_effect;  ///< As in struct comparison.
};

struct compare_rules {
    double floor;         ///< Changes up to this share are not worth a verdict.
    double launch_floor;  ///< Spread between launches that is added where they are few.
    double error_rate;    ///< False discovery rate.
};

/// Rows from which on the bulk of a table tells of a drift between the runs: the median of so many
/// stays where it is though a third of them changed.
enum { COMPARE_DRIFT_ROWS = 20 };

/// By how much the whole table moved, as logarithms of ratios.
struct compare_drift {
    size_t rows;     ///< That tell of it; 0: too few.
    double shift;    ///< Median over the rows.
    double scatter;  ///< Standard deviation of the rows around it, beyond their own errors.
};

/// What was added to the rows' own spread: between launches of a side that has few, as a share, 0
/// when nothing was; and for the drift between the runs.
struct compare_added {
    double base, now;
    struct compare_drift drift;
};

/// Judges the pairs of one table. The method stands at its head in compare.c.
struct compare_added compare_judge(struct compare_pair *pairs, size_t count,
                                   const struct compare_rules *rules);

/// Why a case has no time.
enum compare_state {
    CASE_TIMED,
    CASE_NOT_RUN,  ///< SKIPPED or UNSUPPORTED: nobody claimed that there would be a time.
    CASE_BAD,      ///< There should be one.
};

/// A case of one file.
struct compare_case {
    char *name, *kernel, *op;  ///< The last two are "" when not known.
    char *problem;             ///< Problem and thread count, without the kernel; "" when not known.
    char *code_hash;           ///< "" when not known.
    bool scalar;               ///< A yardstick for --relative.
    enum compare_state state;
    char *reason;              ///< Of a case without time, else NULL.
    double ns;                 ///< Median over the launches' medians.
    struct compare_side side;  ///< NAN for a launch that has no sample, until compare_compact().
};

/// A file's cases.
struct compare_file {
    bool own;         ///< Of mhabench; else of plain Google Benchmark.
    json_t *context;  ///< Or NULL.
    size_t count;
    struct compare_case *cases;
    size_t converted;   ///< Plain files: times in other units than ns.
    size_t aggregated;  ///< Plain files: cases of which there are only aggregates.
};

/// Reads a result of ours, or one of Google Benchmark. Prints a line and returns EXIT_USAGE when it
/// is neither; compare_file_free() is right after every outcome.
int compare_read(const char *path, struct compare_file *file);
void compare_file_free(struct compare_file *file);

/// Takes out the launches that have no sample.
void compare_compact(struct compare_side *side);

struct compare_settings {
    double floor, launch_floor;
    bool relative;
};

/// Compares two files. Prints a line and returns EXIT_USAGE when one cannot be read or when they
/// cannot be compared; comparison_free() is right after every outcome.
int compare_files(const char *base_path, const char *new_path, const struct compare_settings *how,
                  struct comparison_report *report);

#endif
