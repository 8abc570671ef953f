/// The table of options: what the parser accepts and what --help tells are one list.
#ifndef MHA_OPTION_TABLE_H
#define MHA_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "options.h"

/// Sets of commands, one bit each.
#define FOR(command) (1u << (command))
#define FOR_SELECTION (FOR(COMMAND_LIST) | FOR(COMMAND_CHECK) | FOR(COMMAND_RUN) | FOR(COMMAND_AB))
#define FOR_KERNELS (FOR_SELECTION | FOR(COMMAND_MACHINE))
/// Commands that write a result file.
#define FOR_RESULTS (FOR(COMMAND_RUN) | FOR(COMMAND_STUDY))
/// Commands that judge changes, those that print reports, and those that choose one kernel an op.
#define FOR_JUDGES (FOR(COMMAND_AB) | FOR(COMMAND_COMPARE))
#define FOR_REPORTS (FOR_JUDGES | FOR(COMMAND_REPORT) | FOR(COMMAND_HISTORY))
#define FOR_CHOSEN (FOR(COMMAND_ATTEND) | FOR(COMMAND_STUDY))
#define FOR_ALL (FOR_KERNELS | FOR_REPORTS | FOR(COMMAND_PLOT) | FOR_CHOSEN)

/// How an option's value is read, and the type of the member that it sets.
enum option_kind {
    OPTION_FLAG,     ///< No value; bool.
    OPTION_TEXT,     ///< const char *.
    OPTION_WORDS,    ///< Comma list of known words, or of any when `known` is NULL; string_list.
    OPTION_WORD,     ///< One known word; const char *.
    OPTION_FILES,    ///< A readable file, not split at commas; string_list.
    OPTION_SIZES,    ///< Numbers and ranges; size_list.
    OPTION_SIZE,     ///< One number; size_t.
    OPTION_SEED,     ///< One number of 64 bits; uint64_t.
    OPTION_SECONDS,  ///< A number of seconds; double.
    OPTION_PERCENT,  ///< A number from 0 to 100; double, as a share of 1.
    OPTION_COLOR,    ///< enum color_mode.
    OPTION_GATE,     ///< enum comparison_gate.
    OPTION_PAIRS,    ///< Comma list of key=value, the key a known word if any are; string_list.
    OPTION_PASS,     ///< Seconds handed on as "--name=value"; string_list.
    OPTION_HELP,     ///< Sets nothing.
};

enum option_group {
    GROUP_SELECTION,
    GROUP_TENSORS,
    GROUP_CHECK,
    GROUP_RUN,
    GROUP_BENCHMARK,
    GROUP_PLOT,
    GROUP_JUDGE,
    GROUP_REPORT,
    GROUP_HISTORY,
    GROUP_ATTEND,
    GROUP_STUDY,
    GROUP_COMMON,
};

struct option_spec {
    const char *name;  ///< Without the dashes.
    enum option_kind kind;
    enum option_group group;
    unsigned commands;  ///< Set of the commands that take it.
    size_t offset;      ///< Of the member in struct options.
    size_t min, max;    ///< OPTION_SIZES, OPTION_SIZE.
    const char *all;    ///< OPTION_SIZES: the word that stands for THREADS_ALL, or NULL.
    word_fn *known;  ///< OPTION_WORDS, OPTION_WORD, OPTION_COLOR, OPTION_PAIRS: the words; or NULL.
    const char *value;    ///< What --help calls the value; NULL for a flag.
    const char *example;  ///< A right value.
    const char *help;     ///< Lines separated by '\n'.
};

/// Gets an option by index; NULL behind the last one.
const struct option_spec *option_get(size_t index);

/// Gets a command's name; NULL behind the last one.
const char *option_command_word(size_t command);

/// Names of the ops, tensor layouts, ISA words and presets, by index; NULL behind the last one.
const char *option_op_word(size_t index);
const char *option_layout_word(size_t index);
const char *option_isa_word(size_t index);
const char *option_preset_word(size_t index);

#endif
