/// The command line: options of every command, the selection among them, and the presets.
#ifndef MHA_OPTIONS_H
#define MHA_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comparison.h"
#include "numbers.h"
#include "problem.h"
#include "words.h"

enum command {
    COMMAND_LIST,
    COMMAND_CHECK,
    COMMAND_RUN,
    COMMAND_MACHINE,
    COMMAND_PLOT,
    COMMAND_AB,
    COMMAND_COMPARE,
    COMMAND_REPORT,
    COMMAND_HISTORY,
    COMMAND_ATTEND,
    COMMAND_STUDY,
};

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/// --threads all: every CPU that the process may use.
#define THREADS_ALL SIZE_MAX

struct op_driver;
struct tensor_set;

struct options {
    enum command command;
    // selection
    struct string_list ops;      ///< Empty: every op that is no ceiling.
    struct string_list isas;     ///< Empty: all.
    struct string_list kernels;  ///< Globs over the full kernel name; empty: all.
    struct string_list dtypes;   ///< Empty: all of list and check, else f32.
    struct string_list presets;  ///< Empty: the command's default.
    struct size_list batch, heads, kv_heads, head_dim, seq_q, seq_kv;  ///< Empty: the preset's.
    struct size_list seq;      ///< Sets seq_q and seq_kv alike, value by value; excludes both.
    struct string_list masks;  ///< Empty: the preset's. "none", "causal", "window:N", "lengths".
    struct string_list positions;  ///< Empty: each op's own.
    struct string_list caches;     ///< Empty: "hot".
    struct string_list data;       ///< Data classes. Empty: each op's first, of check all.
    struct size_list threads;      ///< Empty: 1 and all. THREADS_ALL stands for all.
    struct string_list with;  ///< "OP=KERNEL": steps of the pipelines of mha, an op at most once.
    struct string_list tensors;           ///< Files of a user's own data; empty: data classes.
    struct string_list tensor_names;      ///< "q=NAME", ...: of a .safetensors file.
    const char *tensor_layout;            ///< "bhsd" or "bshd"; NULL: none given.
    const struct tensor_set *tensor_set;  ///< What `tensors` are, once read; see tensors.h.
    // common
    uint64_t seed;
    struct string_list plugins;
    const char *max_isa;  ///< NULL: no limit.
    double timeout_s;     ///< A worker that reports nothing for so long is killed.
    bool json;
    bool verbose;
    bool exhaustive;  ///< check: every float of the exponentials.
    enum color_mode color;
    // run
    const char
        *out;  ///< run: the file, NULL: a dated one. plot: the folder, NULL: the current one.
    bool resume;
    double budget_s;    ///< 0: none given.
    size_t launches;    ///< 0: none given.
    double min_time_s;  ///< --benchmark_min_time: length of one sample; 0: none given.
    struct string_list benchmark_args;  ///< What passes through to Google Benchmark, as
                                        ///< "--benchmark_min_warmup_time=0.5".
    struct string_list context;         ///< --benchmark_context key=value pairs.
    // what judges two builds or results
    double floor;               ///< Share, not per cent: changes up to it are not worth a verdict.
    double launch_floor;        ///< Share: added between launches where these are few.
    enum comparison_gate gate;  ///< What the exit code tells.
    bool relative;              ///< compare: against the scalar kernel of the same run.
    // the form of a report; at most one of these and json
    bool markdown, junit, gab;
    size_t max_chars;  ///< Of a markdown report; 0: no limit.
    // history
    const char *db;         ///< The SQLite file.
    const char *case_glob;  ///< Over case names; NULL: all.
    size_t last;            ///< show: results of each series; 0: none given.
    const char *commit;     ///< ack: where the step is.
    const char *format;     ///< export: "json" or "csv"; NULL: none given.
    // attend
    struct string_list gazes;  ///< --head: names of heads; empty: all that take the text.
    const char *gaze_mask;     ///< "none" or "causal"; NULL: none given.
    // what a command reads: files, or a text; most take none
    struct string_list operands;
};

/// Problems that a selection names, and the thread counts to run them at.
struct selection {
    size_t count;
    struct problem *problems;
    struct size_list threads;
};

/// Finds a command by its name. Prints one line and returns EXIT_USAGE when there is none.
int options_command(const char *word, enum command *command);

/// Parses the words after the command's name; `options` keeps pointers into argv. On bad usage
/// prints one line on stderr, naming the option, the value and what would be right, and returns
/// EXIT_USAGE. --help prints the command's help on stdout and sets *help. options_free() is right
/// after every outcome.
int options_parse(struct options *options, enum command command, int argc, char **argv, bool *help);

/// Frees what options_parse() made.
void options_free(struct options *options);

/// Expands the selection to problems without duplicates, ordered by shape, op, dtype, mask, cache,
/// data.
/// `threads_allowed` is what --threads all means and may not exceed. Prints one line and returns
/// EXIT_USAGE when the selection names nothing or something impossible (heads not a multiple of
/// kv_heads, more threads than allowed, ...).
int options_select(const struct options *options, size_t threads_allowed,
                   struct selection *selection);

/// Gets the thread counts that --threads names (none given: 1 and all), without duplicates. Prints
/// one line and returns EXIT_USAGE when one is more than `allowed`.
int options_threads(const struct options *options, size_t allowed, struct size_list *threads);

/// Tells whether a selection has problems of an op in a dtype.
bool options_take(const struct options *options, const struct op_driver *driver,
                  enum element element);

/// Goes through the data classes that a selection names for an op, as struct problem has them; with
/// none named that is NULL alone. `at` begins at 0. Returns false behind the last one.
bool options_data(const struct options *options, const struct op_driver *driver, size_t *at,
                  const char **data);

void selection_free(struct selection *selection);

/// Prints the overall help, or one command's.
void options_usage(void);
void options_help(enum command command);

#endif
