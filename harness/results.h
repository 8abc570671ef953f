/// Rows of a run, the result file (Google Benchmark's JSON plus a `mhabench` object), the journal,
/// and the terminal table. The schema stands in results/schema.json.
#ifndef MHA_RESULTS_H
#define MHA_RESULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "problem.h"

enum verdict {
    VERDICT_UNTESTED,
    VERDICT_PASSED,
    VERDICT_FAILED,
    VERDICT_MISTRUSTED,
    VERDICT_SKIPPED,
    VERDICT_UNSUPPORTED,
    VERDICT_CRASHED,
    VERDICT_TIMEOUT,
    VERDICT_ACCOUNTING,
};

/// Gets the verdict's word ("PASSED"), or finds it; VERDICT_UNTESTED for an unknown word.
const char *verdict_text(enum verdict verdict);
enum verdict verdict_find(const char *text);

/// Gets the exit code that a verdict asks for.
int verdict_exit(enum verdict verdict);

/// Samples of one launch, nanoseconds per call.
struct launch_samples {
    size_t launch;  ///< Which of the run, from 0; 0 when read from a file.
    size_t count;
    double *ns;
};

/// One step of a pipeline.
struct row_step {
    char *op, *kernel;
    double ns;     ///< In one call: the shortest time of all calls that were made for it.
    double share;  ///< Of all steps' time.
};

/// One case with everything that is known of it. A double that is not known is NAN (null in the
/// file).
struct row {
    struct problem problem;
    char *kernel;  ///< Full symbol.
    char *isa, *tag;
    bool peer;
    char *plugin;  ///< Path, or NULL.
    int threads;   ///< Asked for; what ran is the same or the row is not PASSED.
    enum verdict verdict;
    char *reason;  ///< One line; NULL when there is nothing to say.
    double max_ulp, bound_share, checked_share;
    double median_ns;       ///< Median over launches of the median within one.
    double min_ns;          ///< Smallest of all samples.
    double spread_within;   ///< Median over launches of (MAD / median) within one.
    double spread_between;  ///< MAD of the launches' medians / their median; NAN with one launch.
    uint64_t iterations;    ///< Of one sample, in the last launch.
    size_t launches;
    struct launch_samples *samples;  ///< [launches]
    size_t disturbed;                ///< Samples that stayed disturbed after all tries.
    double flops, bytes, gflops, gbytes_per_s;
    const char *ceiling_kind;  ///< "fma" or "bandwidth", or NULL.
    double ceiling_share;
    double effective_ghz;
    double speedup_scalar, speedup_autovec;
    char *best_peer;           ///< Kernel name, or NULL.
    double speedup_best_peer;  ///< Peer's time / ours: above 1 we are faster.
    double pack_ns, create_ns;
    size_t steps;  ///< Of a pipeline that was timed, else 0.
    struct row_step *step;
    char *code_hash;  ///< "" when unknown.
    char *repro;      ///< One command line that repeats the case.
};

/// A measured ceiling.
struct ceiling {
    const char *kind;  ///< "fma" or "bandwidth".
    char isa[16], dtype[8];
    const char *level;  ///< "L1", "L2", "L3", "DRAM"; "" for fma.
    const char *mix;  ///< "read", "write", "copy", "streaming write", "streaming copy"; "" for fma.
    double bytes;     ///< Working set that it was measured at; 0 for fma.
    int threads;
    double value;   ///< GFLOP/s or GB/s: median of the samples.
    double spread;  ///< MAD / median.
    size_t samples;
};

struct ceiling_list {
    size_t count;
    struct ceiling *items;
};

/// A finished run.
struct result {
    json_t *context;  ///< The `context` object, complete: GB's own fields and context.mhabench.
    size_t count;
    struct row *rows;
};

/// Grows by one with every change that an old reader would misread.
enum { RESULTS_SCHEMA_VERSION = 1 };

/// Makes a context with the fields that Google Benchmark itself writes (date, host_name,
/// executable, num_cpus, mhz_per_cpu, cpu_scaling_enabled, caches, load_avg, library_build_type),
/// to which the caller adds `mhabench` and what the user gave.
json_t *results_context_base(const char *executable);

/// Makes context.mhabench.ceilings, and gets the ceilings back out of a result's context; those
/// that are not known are left out. Free with ceilings_free().
json_t *ceilings_to_json(const struct ceiling_list *list);
void ceilings_from_json(const json_t *context, struct ceiling_list *list);
void ceilings_free(struct ceiling_list *list);

/// Takes a launch's steps from JSON, [{"op", "kernel", "ns"}, ...], into a row: of steps that it
/// has already the shorter times stay. Sets the shares. Returns false, and leaves the row without
/// steps, when it is no such array.
bool row_add_steps(struct row *row, const json_t *steps);

/// Makes a row's `mhabench` object: everything that is known of it, so that a journal can be made
/// of such objects.
json_t *row_to_json(const struct row *row);

/// Reads such an object into an empty row. On failure writes what is wrong to `why`, leaves the row
/// empty and returns false.
bool row_from_json(const json_t *object, struct row *row, char *why, size_t why_bytes);

/// Tells whether the row has a time that may be shown or compared: only what PASSED has.
bool row_has_time(const struct row *row);

/// Fills the derived numbers of all rows from their samples, flops and bytes: medians, spreads,
/// rates, speed-ups over scalar, autovec and the best peer of the same problem, threads and ISA
/// level. Takes the samples away from a row that neither PASSED nor is ACCOUNTING: no number
/// without PASSED. ACCOUNTING keeps its numbers as evidence, but has no speed-up and lends none.
void results_derive(struct result *result);

/// Makes the file's JSON. Strict RFC 8259: no value is NaN or infinite.
json_t *results_to_json(const struct result *result);

/// Writes JSON to `path`: to a temporary name beside it, synced, renamed over a regular or absent
/// target; anything else (pipe, device) is written directly. Prints one line and returns EXIT_USAGE
/// when a write, close or rename fails; nothing half written stays. A symbolic link stays one: what
/// it leads to is replaced. SIGINT, SIGTERM and SIGHUP wait while a temporary file exists.
int results_write(const json_t *json, const char *path);

/// Makes the text that results_write() writes, to be freed: strict, the same in every locale.
char *results_text(const json_t *json, size_t *bytes);

/// Writes a text as results_write() does.
int results_write_text(const char *text, size_t bytes, const char *path);

/// Tells, before anything is measured, whether `path` can be written: its folder exists and takes
/// files. Prints one line and returns EXIT_USAGE when not.
int results_check_writable(const char *path);

/// Reads a result file. Prints one line (file, line, what is wrong) and returns EXIT_USAGE when it
/// is unreadable, no JSON, or not a result of ours.
int results_read(const char *path, struct result *result);

/// Loads a JSON file of any kind, within limits on its size and on the memory that it takes. Prints
/// one line and returns NULL when it cannot.
json_t *results_load(const char *path);

/// Reads a result out of a file's JSON; `path` is for messages. Fails as results_read() does.
int results_from_json(const char *path, const json_t *root, struct result *result);

void results_free(struct result *result);
void row_free(struct row *row);

/// Prints the rows as a table. `color` tells whether escape codes may be used; width is taken from
/// the terminal, or none when `out` is no terminal.
void results_table(const struct result *result, FILE *out, bool color);

#endif
