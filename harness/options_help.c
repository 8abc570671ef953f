/// --help: everything that the table of options knows, and examples.
#include <stdio.h>
#include <string.h>

#include "attend_heads.h"
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

/// Prints the known words, in lines that fit a terminal of WIDTH columns.
static void print_words(const char *title, word_fn *known) {
    enum { WIDTH = 90 };
    size_t column = COLUMN;
    printf("%-*s", COLUMN, title);
    for (size_t i = 0; known(i) != NULL; i++) {
        const bool last = known(i + 1) == NULL;
        if (column + strlen(known(i)) + 1 > WIDTH) {
            printf("\n%*s", COLUMN, "");
            column = COLUMN;
        }
        printf("%s%s", known(i), last ? "\n" : ", ");
        column += strlen(known(i)) + 2;
    }
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
         "Lists the instruction sets (compiled, had by the CPU, enabled by the operating system,\n"
         "tested: check can run their kernels here), the kernels of the selection, and what the\n"
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
         "  mhabench check --op softmax --exhaustive\n"
         "  mhabench check --max-isa avx2 --threads 1\n"},
    [COMMAND_RUN] =
        {"run [options]",
         "Measures every kernel of the selection beside the baselines, the peers and what this\n"
         "machine can do. Only a kernel that passed its check on the same problem gets a time.",
         "  mhabench run\n"
         "  mhabench run --preset gpt3 --op qk --threads 1 --out gpt3.json\n"
         "  mhabench run --heads 12,96 --head-dim 64,128 --seq 128:2048:x2 --budget 600\n"
         "  mhabench run --op qk --seq-q 1 --seq-kv 4096 --cache hot,cold\n"
         "  mhabench run --op softmax --data normal,drift,jump\n"
         "  mhabench run --resume --out gpt3.json\n"},
    [COMMAND_MACHINE] = {"machine [options]",
                         "Tells what this machine is and what the program may use of it.",
                         "  mhabench machine\n"
                         "  mhabench machine --json\n"},
    [COMMAND_PLOT] = {"plot RESULT.json [options]",
                      "Draws the images of a result file that `mhabench run` wrote.",
                      "  mhabench plot gpt3.json --out images\n"},
    [COMMAND_AB] =
        {"ab BASE NEW [options]",
         "Measures two builds of the kernels against each other, side by side in one process, and\n"
         "tells which rows became slower. Each is a kernel library (a shared object) or a git\n"
         "revision, which is built with the compiler and flags of this program. Rows whose "
         "machine\n"
         "code is identical cannot be SLOWER. Exit code 1 when a row is SLOWER, MISSING or ERROR.",
         "  mhabench ab HEAD~1 HEAD\n"
         "  mhabench ab main HEAD --op qk --preset gpt3 --threads 1 --budget 300\n"
         "  mhabench ab old/libmha_kernels.so new/libmha_kernels.so --floor 2\n"
         "  mhabench ab origin/main HEAD --markdown --out summary.md --gate inconclusive\n"},
    [COMMAND_COMPARE] =
        {"compare BASE.json NEW.json [options]",
         "Compares two result files, row by row, and tells which rows became slower: of mhabench,\n"
         "or plain ones of Google Benchmark. Exit code 1 when a row is SLOWER, MISSING or ERROR.",
         "  mhabench compare before.json after.json\n"
         "  mhabench compare before.json after.json --floor 2 --gate inconclusive\n"
         "  mhabench compare before.json after.json --markdown --max-chars 65536 --out comment.md\n"
         "  mhabench compare haswell.json zen4.json --relative\n"},
    [COMMAND_REPORT] = {"report FILE [options]",
                        "Prints a result file, or what `compare --json` wrote, in another form.",
                        "  mhabench report gpt3.json\n"
                        "  mhabench report gpt3.json --markdown --out $GITHUB_STEP_SUMMARY\n"
                        "  mhabench report gpt3.json --github-action-benchmark --out bench.json\n"
                        "  mhabench report compared.json --junit --out compared.xml\n"},
    [COMMAND_HISTORY] =
        {"history add RESULT.json... | show | check | export | ack [options]",
         "Keeps the results of many commits in one SQLite file. `add` puts result files in, the\n"
         "same one only once; `show` draws a line and prints a table per case; `check` finds the\n"
         "commits at which a case became slower or faster for good, and ends with code 1 while\n"
         "the newest step of a case is a slow-down that `ack` has not acknowledged; `export`\n"
         "prints everything.",
         "  mhabench history add result.json --db history.db\n"
         "  mhabench history show --db history.db --case 'qk/*' --last 50\n"
         "  mhabench history check --db history.db\n"
         "  mhabench history ack --db history.db --case 'softmax/*' --commit 2f60c47\n"
         "  mhabench history export --db history.db --format csv --out history.csv\n"},
    [COMMAND_ATTEND] =
        {"attend TEXT [options]",
         "Shows what attention heads look at in a text of at most 256 words and marks: the weight\n"
         "of every key for every query, in per cent, as the kernels of qkv_proj, qk and softmax\n"
         "compute it. Exit code 1 when a kernel's result is wrong.",
         "  mhabench attend \"The animal did not cross the street because it was tired\"\n"
         "  mhabench attend \"I saw the movie\" --head previous-token,semantic --mask causal\n"
         "  mhabench attend \"The clever fox jumped\" --head seed-positional --json\n"
         "  mhabench attend \"Dog bites man\" --plugin ./mine.so --with qk=qk_f32_scalar_mine\n"},
    [COMMAND_STUDY] =
        {"study [options]",
         "Measures what the literature claims of multi-head attention, on this machine: (a) many\n"
         "narrow heads against one wide one, (b) 96 small operations against a large one, (c) "
         "heads\n"
         "over threads, (d) the length of the sequence, (e) position encodings, (f) splitting and\n"
         "concatenating. Prints each claim, what was measured and whether it holds, by a "
         "criterion\n"
         "that is printed with it. The rows go to a result file, as those of run do. Whether a "
         "claim\n"
         "holds does not change the exit code.",
         "  mhabench study\n"
         "  mhabench study --budget 600 --launches 10 --out study.json\n"
         "  mhabench study --isa avx2 --with qk=qk_f32_avx2_libxsmm --json\n"
         "  mhabench study --resume --out study.json\n"},
};

static void print_heads(void) {
    printf("\nHeads, their weights made and not learned:\n");
    for (size_t i = 0; attend_head_get(i) != NULL; i++) {
        const struct attend_head *head = attend_head_get(i);
        printf("  %-*s%s\n", COLUMN - 2, head->name, head->summary);
        for (size_t w = 0; w < head->words; w++) {
            printf("%*s%s%s", w == 0 ? COLUMN : 0, "", w == 0 ? "only for \"" : " ", head->text[w]);
        }
        printf("%s", head->words > 0 ? "\"\n" : "");
    }
}

static void print_exit_codes(void) {
    printf(
        "\nExit codes: 0 done, nothing wrong; 1 a check failed or a regression was found; 2 bad\n"
        "usage, unreadable data, unwritable output; 3 inconclusive, under --gate inconclusive;\n"
        "77 nothing that was asked for can run on this machine.\n");
}

void options_help(enum command command) {
    const struct command_text *text = &texts[command];
    printf("usage: mhabench %s\n\n%s\n", text->usage, text->purpose);
    if ((FOR_SELECTION & FOR(command)) != 0) {
        print_selection(command);
    }
    print_group(command, GROUP_TENSORS,
                "Tensors of your own, in place of the shapes and data of the program:");
    print_group(command, GROUP_CHECK, "Check:");
    print_group(command, GROUP_RUN, "Run:");
    print_group(command, GROUP_BENCHMARK, "Google Benchmark's own:");
    print_group(command, GROUP_PLOT, "Plot:");
    print_group(command, GROUP_JUDGE, "Judgement:");
    print_group(command, GROUP_REPORT, "Report:");
    print_group(command, GROUP_HISTORY, "History:");
    print_group(command, GROUP_ATTEND, "Attend:");
    print_group(command, GROUP_STUDY, "Study:");
    if (command == COMMAND_ATTEND) {
        print_heads();
    }
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
        "  ab        two builds of the kernels, side by side: what became slower\n"
        "  compare   two result files: what became slower\n"
        "  report    a result file or a comparison as markdown, JUnit XML or JSON\n"
        "  history   results of many commits: where did it become slower\n"
        "  attend    what a head looks at in a text, through the kernels\n"
        "  study     what the literature claims of attention, measured here\n"
        "  selftest  the project's own tests (only by the launcher: ./mhabench selftest)\n\n"
        "`mhabench COMMAND --help` tells the options of each.\n\n"
        "Examples:\n"
        "  mhabench check --op qk\n"
        "  mhabench run --preset gpt3 --threads 1 --out gpt3.json\n"
        "  mhabench plot gpt3.json --out images\n");
    print_exit_codes();
}
