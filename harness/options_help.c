/// --help: everything that the table of options knows, and examples.
#include <stdio.h>
#include <string.h>

#include "option_table.h"
#include "options.h"
#include "presets.h"

/// Column where explanations start.
enum { COLUMN = 30 };

static void print_option(const struct option_spec *spec) {
    char left[80];
    const int length =
        snprintf(left, sizeof(left), "  --%s%s%s", spec->name, spec->value != NULL ? " " : "",
                 spec->value != NULL ? spec->value : "");
    if (length < COLUMN - 1) {
        printf("%-*s", COLUMN, left);
    } else {
        printf("%s\n%*s", left, COLUMN, "");
    }
    for (const char *line = spec->help;;) {
        const size_t end = strcspn(line, "\n");
        printf("%.*s\n", (int)end, line);
        if (line[end] == '\0') {
            return;
        }
        line += end + 1;
        printf("%*s", COLUMN, "");
    }
}

static void print_group(enum command command, enum option_group group, const char *title) {
    bool titled = false;
    for (size_t i = 0; option_get(i) != NULL; i++) {
        const struct option_spec *spec = option_get(i);
        if (spec->group == group && (spec->commands & FOR(command)) != 0) {
            if (!titled) {
                printf("\n%s\n", title);
                titled = true;
            }
            print_option(spec);
        }
    }
}

static void print_words(const char *title, word_fn *known) {
    char words[512];
    words_join(words, sizeof(words), known);
    printf("%-*s%s\n", COLUMN, title, words);
}

static void print_selection(enum command command) {
    print_group(command, GROUP_SELECTION, "Selection:");
    printf(
        "\nA LIST is 12, or 1,12,96, or a range: 64:512:x2 (64,128,256,512) or 64:512:+64;\n"
        "repeated options add up.\n\n");
    print_words("  OP is one of", option_op_word);
    print_words("  ISA is one of", option_isa_word);
    printf("\nPresets (default: %s):\n", command == COMMAND_CHECK ? "edge" : "quick");
    for (size_t i = 0; preset_get(i) != NULL; i++) {
        const struct preset *preset = preset_get(i);
        printf("  %-*s%s\n%*smasks: %s\n", COLUMN - 2, preset->name, preset->summary, COLUMN, "",
               preset->masks);
    }
}

/// What each command does, and how it is called.
struct command_text {
    const char *usage;
    const char *purpose;
    const char *examples;
};

static const struct command_text texts[] = {
    [COMMAND_LIST] =
        {"list [options]",
         "Lists the kernels of the selection, whether this machine can run them, and what the\n"
         "program was built without.",
         "  mhabench list\n"
         "  mhabench list --op qk --isa avx2,avx512 --json\n"
         "  mhabench list --plugin ./mine.so --kernel '*_mine'\n"},
    [COMMAND_CHECK] =
        {"check [options]",
         "Checks every kernel of the selection against a double-precision oracle, on shapes and\n"
         "data that break kernels. Exit code 1 when a check failed.",
         "  mhabench check\n"
         "  mhabench check --op softmax --mask causal --seq 1:128:x2\n"
         "  mhabench check --plugin ./mine.so --kernel '*_mine' --heads 2 --kv-heads 1\n"
         "  mhabench check --max-isa avx2 --threads 1\n"},
    [COMMAND_RUN] =
        {"run [options]",
         "Measures every kernel of the selection beside the baselines, the peers and what this\n"
         "machine can do. Only a kernel that passed its check on the same problem gets a time.",
         "  mhabench run\n"
         "  mhabench run --preset gpt3 --op qk --threads 1 --out gpt3.json\n"
         "  mhabench run --heads 12,96 --head-dim 64,128 --seq 128:2048:x2 --budget 600\n"
         "  mhabench run --op qk --seq-q 1 --seq-kv 4096 --cache hot,cold\n"
         "  mhabench run --resume --out gpt3.json\n"},
    [COMMAND_MACHINE] = {"machine [options]",
                         "Tells what this machine is and what the program may use of it.",
                         "  mhabench machine\n"
                         "  mhabench machine --json\n"},
    [COMMAND_PLOT] = {"plot RESULT.json [options]",
                      "Draws the images of a result file that `mhabench run` wrote.",
                      "  mhabench plot gpt3.json --out images\n"},
};

static void print_exit_codes(void) {
    printf(
        "\nExit codes: 0 done, nothing wrong; 1 a check failed; 2 bad usage, unreadable data,\n"
        "unwritable output; 77 nothing that was asked for can run on this machine.\n");
}

void options_help(enum command command) {
    const struct command_text *text = &texts[command];
    printf("usage: mhabench %s\n\n%s\n", text->usage, text->purpose);
    if ((FOR_SELECTION & FOR(command)) != 0) {
        print_selection(command);
    }
    print_group(command, GROUP_RUN, "Run:");
    print_group(command, GROUP_BENCHMARK, "Google Benchmark's own:");
    print_group(command, GROUP_PLOT, "Plot:");
    print_group(command, GROUP_COMMON, "Common:");
    printf("\nExamples:\n%s", text->examples);
    print_exit_codes();
}

void options_usage(void) {
    printf(
        "usage: mhabench COMMAND [options]\n\n"
        "Checks and measures the CPU kernels of multi-head attention on this machine.\n\n"
        "Commands:\n"
        "  list      kernels, and whether this machine can run them\n"
        "  check     are they right: every kernel against a double-precision oracle\n"
        "  run       how fast are they: beside baselines, peers and the machine's ceilings\n"
        "  machine   what this machine is\n"
        "  plot      images of a result file\n"
        "  selftest  the project's own tests (only by the launcher: ./mhabench selftest)\n\n"
        "`mhabench COMMAND --help` tells the options of each.\n\n"
        "Examples:\n"
        "  mhabench check --op qk\n"
        "  mhabench run --preset gpt3 --threads 1 --out gpt3.json\n"
        "  mhabench plot gpt3.json --out images\n");
    print_exit_codes();
}
