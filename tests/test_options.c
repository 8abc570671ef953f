/// The command line: every kind of right and wrong word, the presets, and the problems that a
/// selection names.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"
#include "diag.h"
#include "machine.h"
#include "numbers.h"
#include "op.h"
#include "options.h"
#include "presets.h"
#include "words.h"

/// Threads that the selections of these tests may use, whatever this machine has.
enum { ALLOWED = 8 };

/// What one command line led to.
struct outcome {
    int code;
    bool help;
    char *words;  ///< What went to stderr.
    char *data;   ///< What went to stdout.
    struct options options;
    struct selection selection;
    char *argv[64];
    int argc;
};

static void capture(int fd, FILE **file, int *saved) {
    fflush(stdout);
    *file = tmpfile();
    assert_non_null(*file);
    *saved = dup(fd);
    assert_true(*saved >= 0);
    assert_true(dup2(fileno(*file), fd) >= 0);
}

static char *captured(int fd, FILE *file, int saved) {
    fflush(stdout);
    assert_true(dup2(saved, fd) >= 0);
    close(saved);
    const long size = lseek(fileno(file), 0, SEEK_END);
    assert_true(size >= 0);
    char *text = calloc((size_t)size + 1, 1);
    assert_non_null(text);
    assert_int_equal(pread(fileno(file), text, (size_t)size, 0), size);
    fclose(file);
    return text;
}

/// Parses words, and expands the selection when that went well.
static void take_words(struct outcome *outcome, enum command command, int argc, char **argv) {
    FILE *words = NULL, *data = NULL;
    int saved_words = -1, saved_data = -1;
    outcome->selection = (struct selection){0};
    capture(STDERR_FILENO, &words, &saved_words);
    capture(STDOUT_FILENO, &data, &saved_data);
    outcome->code = options_parse(&outcome->options, command, argc, argv, &outcome->help);
    if (outcome->code == EXIT_DONE && !outcome->help && command <= COMMAND_RUN) {
        outcome->code = options_select(&outcome->options, ALLOWED, &outcome->selection);
    }
    outcome->data = captured(STDOUT_FILENO, data, saved_data);
    outcome->words = captured(STDERR_FILENO, words, saved_words);
}

/// Splits a line at blanks.
static void take(struct outcome *outcome, enum command command, const char *line) {
    outcome->argc = 0;
    for (const char *at = line + strspn(line, " "); *at != '\0'; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        assert_true(outcome->argc < 64);
        outcome->argv[outcome->argc] = strndup(at, length);
        assert_non_null(outcome->argv[outcome->argc]);
        outcome->argc++;
        at += length;
    }
    take_words(outcome, command, outcome->argc, outcome->argv);
}

static void done(struct outcome *outcome) {
    options_free(&outcome->options);
    selection_free(&outcome->selection);
    free(outcome->words);
    free(outcome->data);
    for (int i = 0; i < outcome->argc; i++) {
        free(outcome->argv[i]);
    }
}

static void assert_has(const char *line, const char *text, const char *part) {
    if (strstr(text, part) == NULL) {
        fail_msg("%s: '%s' is not in:\n%s", line, part, text);
    }
}

/// Asserts exit code 2, nothing on stdout, and exactly one line on stderr that holds all `parts`.
static void assert_refused_words(const struct outcome *outcome, const char *line,
                                 const char *const *parts) {
    if (outcome->code != EXIT_USAGE) {
        fail_msg("%s: exit code %d", line, outcome->code);
    }
    assert_string_equal(outcome->data, "");
    assert_has(line, outcome->words, "mhabench: ");
    const char *newline = strchr(outcome->words, '\n');
    if (newline == NULL || newline[1] != '\0') {
        fail_msg("%s: not one line:\n%s", line, outcome->words);
    }
    for (size_t i = 0; parts[i] != NULL; i++) {
        assert_has(line, outcome->words, parts[i]);
    }
}

static void assert_refused(enum command command, const char *line, const char *const *parts) {
    struct outcome outcome;
    take(&outcome, command, line);
    assert_refused_words(&outcome, line, parts);
    assert_int_equal(outcome.selection.count, 0);
    done(&outcome);
}

#define REFUSED(command, line, ...) \
    assert_refused(command, line, (const char *const[]){__VA_ARGS__, NULL})

static void assert_accepted(struct outcome *outcome, enum command command, const char *line) {
    take(outcome, command, line);
    if (outcome->code != EXIT_DONE) {
        fail_msg("%s: exit code %d: %s", line, outcome->code, outcome->words);
    }
    assert_string_equal(outcome->words, "");
}

static void assert_list(const struct size_list *list, size_t count, const size_t *values) {
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(list->items[i], values[i]);
    }
}

#define LIST(list, ...)                                                 \
    assert_list(list, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), \
                (const size_t[]){__VA_ARGS__})

static void numbers_and_ranges(void **state) {
    (void)state;
    struct outcome o;
    assert_accepted(&o, COMMAND_RUN, "--op qk --heads 1,12,96 --seq 64:512:x2 --head-dim=64");
    LIST(&o.options.heads, 1, 12, 96);
    LIST(&o.options.seq, 64, 128, 256, 512);
    LIST(&o.options.head_dim, 64);
    done(&o);
    // The bound counts when it is hit, and only then; lists and ranges mix; repeats append.
    assert_accepted(&o, COMMAND_RUN, "--seq-q 64:200:+64,7 --seq-q 1:100:x3 --seq-kv 0,5:5:+1");
    LIST(&o.options.seq_q, 64, 128, 192, 7, 1, 3, 9, 27, 81);
    LIST(&o.options.seq_kv, 0, 5);
    done(&o);
    // The largest values, and a step that would overflow.
    assert_accepted(&o, COMMAND_LIST, "--heads 1048576 --batch 1:5:+18446744073709551615");
    LIST(&o.options.heads, 1048576);
    LIST(&o.options.batch, 1);
    done(&o);
    assert_accepted(&o, COMMAND_LIST, "--batch 2:1048576:x99999999999999999999 --seq 16777216");
    LIST(&o.options.batch, 2);
    LIST(&o.options.seq, 16777216);
    done(&o);
    assert_accepted(&o, COMMAND_LIST, "--batch 3:7:x2 --heads 1 --seq-kv 0:128:+64");
    LIST(&o.options.batch, 3, 6);
    LIST(&o.options.seq_kv, 0, 64, 128);
    done(&o);
}

static void wrong_numbers(void **state) {
    (void)state;
    static const char *const axes[] = {"--batch", "--heads", "--kv-heads", "--head-dim",
                                       "--seq",   "--seq-q", "--seq-kv",   "--threads"};
    // Wrong on every axis.
    static const char *const values[] = {
        "-1",
        "1.5",
        "1x",
        "x",
        "0x10",
        "+5",
        "1,,2",
        ",",
        "1,",
        "1:2",
        "1:2:",
        "1:2:3",
        "1:2:x",
        "1:2:+",
        "1:2:x1",
        "1:2:x0",
        "1:2:+0",
        "2:1:+1",
        "2:1:x2",
        ":",
        "1:2:x-2",
        "1::x2",
        ":2:x2",
        "1:2:x2:x2",
        "1e3",
        "99999999999999999999",
        "18446744073709551616",
        "1:99999999999999999999:x2",
        "all:2:x2",
        "1\xc2\xa0",
    };
    for (size_t a = 0; a < sizeof(axes) / sizeof(axes[0]); a++) {
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
            char line[128];
            snprintf(line, sizeof(line), "%s %s", axes[a], values[v]);
            REFUSED(COMMAND_RUN, line, axes[a], values[v]);
            snprintf(line, sizeof(line), "%s=%s", axes[a], values[v]);
            REFUSED(COMMAND_CHECK, line, axes[a], values[v]);
        }
    }
    // What would be right is in the line.
    REFUSED(COMMAND_RUN, "--heads 0", "--heads '0'", "too small", "from 1 to 1048576");
    REFUSED(COMMAND_RUN, "--kv-heads 0", "--kv-heads '0'", "too small");
    REFUSED(COMMAND_RUN, "--batch 0", "--batch '0'", "too small");
    REFUSED(COMMAND_RUN, "--head-dim 0", "--head-dim '0'", "too small");
    REFUSED(COMMAND_RUN, "--seq 0", "--seq '0'", "too small");
    REFUSED(COMMAND_RUN, "--seq-q 0", "--seq-q '0'", "too small");
    REFUSED(COMMAND_RUN, "--heads 1,0,2", "--heads '1,0,2'", "0 is too small");
    REFUSED(COMMAND_RUN, "--heads 1048577", "--heads '1048577'", "too large", "1048576");
    REFUSED(COMMAND_RUN, "--head-dim 1048577", "--head-dim '1048577'", "too large", "1048576");
    REFUSED(COMMAND_RUN, "--seq 16777217", "--seq '16777217'", "too large", "16777216");
    REFUSED(COMMAND_RUN, "--seq 99999999999999999999", "--seq", "'99999999999999999999'",
            "too large", "from 1 to 16777216");
    REFUSED(COMMAND_RUN, "--seq 64:512", "--seq '64:512'", "step", "64:512:x2", "64:512:+64");
    REFUSED(COMMAND_RUN, "--seq 1:8:x1", "--seq '1:8:x1'", "at least 2", "1:8:x2");
    REFUSED(COMMAND_RUN, "--seq 1:8:+0", "--seq '1:8:+0'", "at least 1", "1:8:+1");
    REFUSED(COMMAND_RUN, "--seq 8:1:+1", "--seq '8:1:+1'", "ends below its start", "1:8:+1");
    REFUSED(COMMAND_RUN, "--seq 1:8:3", "--seq '1:8:3'", "neither xN nor +N", "1:8:x2");
    REFUSED(COMMAND_RUN, "--seq-kv 0:8:x2", "--seq-kv '0:8:x2'", "stays 0", "+N");
    REFUSED(COMMAND_RUN, "--seq 1:16777216:+1", "--seq '1:16777216:+1'", "4096", "larger step");
    REFUSED(COMMAND_RUN, "--seq 5,all", "--seq '5,all'", "all is not a whole number");
    REFUSED(COMMAND_RUN, "--seq 1:4000:+1 --seq 1:4000:+1", "--seq '1:4000:+1'", "4096");
}

static void thread_counts(void **state) {
    (void)state;
    struct outcome o;
    assert_accepted(&o, COMMAND_RUN, "--op qk --seq 8");
    LIST(&o.selection.threads, 1, ALLOWED);
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --seq 8 --threads all");
    LIST(&o.options.threads, THREADS_ALL);
    LIST(&o.selection.threads, ALLOWED);
    done(&o);
    // As given, each once.
    assert_accepted(&o, COMMAND_CHECK, "--op qk --seq 8 --threads 4,1:8:x2,all --threads 3,1");
    LIST(&o.selection.threads, 4, 1, 2, 8, 3);
    done(&o);
    assert_accepted(&o, COMMAND_CHECK, "--seq 8 --threads 1");
    LIST(&o.selection.threads, 1);
    done(&o);
    struct selection one;
    assert_accepted(&o, COMMAND_CHECK, "--op qk --seq 8");
    assert_int_equal(options_select(&o.options, 1, &one), EXIT_DONE);
    LIST(&one.threads, 1);
    selection_free(&one);
    done(&o);
    // Before the machine is known to the selection, the message asks for its limit itself.
    char range[64];
    snprintf(range, sizeof(range), "from 1 to %zu, or all", machine_threads_allowed());
    REFUSED(COMMAND_RUN, "--threads 0", "--threads '0'", "too small", range);
    REFUSED(COMMAND_RUN, "--threads -1", "--threads '-1'", "too small", range);
    REFUSED(COMMAND_RUN, "--threads many", "--threads 'many'", range);
    REFUSED(COMMAND_RUN, "--threads all,0", "--threads 'all,0'", range);
    REFUSED(COMMAND_RUN, "--threads 99999999999999999999", "--threads", "too large", range);
    REFUSED(COMMAND_RUN, "--threads 9", "--threads '9'", "may use 8", "from 1 to 8, or all");
    REFUSED(COMMAND_CHECK, "--threads 1:16:x2", "--threads '16'", "may use 8");
}

static void wrong_words(void **state) {
    (void)state;
    const char *op = op_get(0)->name;
    REFUSED(COMMAND_RUN, "--op nonsense", "--op 'nonsense'", "known are", op, "softmax");
    for (size_t i = 0; i < op_count(); i++) {
        REFUSED(COMMAND_RUN, "--op nonsense", op_get(i)->name);
    }
    REFUSED(COMMAND_RUN, "--op sofmtax", "--op 'sofmtax'", "did you mean 'softmax'?");
    REFUSED(COMMAND_RUN, "--op qk,", "--op 'qk,'", "a word is missing", "known are");
    REFUSED(COMMAND_RUN, "--op ,qk", "--op ',qk'", "a word is missing");
    REFUSED(COMMAND_RUN, "--op QK", "--op 'QK'", "known are");
    for (size_t i = 0; i < mha_isa_count(); i++) {
        REFUSED(COMMAND_RUN, "--isa foo", "--isa 'foo'", mha_isa_status(i, NULL).isa);
        REFUSED(COMMAND_RUN, "--max-isa foo", "--max-isa 'foo'", mha_isa_status(i, NULL).isa);
    }
    REFUSED(COMMAND_RUN, "--isa avx3", "--isa 'avx3'", "did you mean 'avx2'?");
    REFUSED(COMMAND_RUN, "--max-isa avx2,avx512", "--max-isa 'avx2,avx512'");
    for (size_t i = 0; preset_get(i) != NULL; i++) {
        REFUSED(COMMAND_RUN, "--preset foo", "--preset 'foo'", preset_get(i)->name);
    }
    REFUSED(COMMAND_RUN, "--preset gtp3", "--preset 'gtp3'", "did you mean 'gpt3'?");
    REFUSED(COMMAND_RUN, "--dtype f64", "--dtype 'f64'", "f32, bf16, f16");
    REFUSED(COMMAND_RUN, "--op softmax --dtype bf16", "--op 'softmax'", "--dtype 'bf16'", "f32");
    REFUSED(COMMAND_RUN, "--op qk --op mha --dtype f16", "--op 'mha'", "--dtype 'f16'", "f32");
    REFUSED(COMMAND_RUN, "--cache warm", "--cache 'warm'", "hot", "cold");
    REFUSED(COMMAND_RUN, "--data jmp", "--data 'jmp'", "did you mean 'jump'?", "x100");
    REFUSED(COMMAND_RUN, "--data default", "--data 'default'", "known are normal");
    REFUSED(COMMAND_CHECK, "--data tensors", "--data 'tensors'", "known are normal");
    REFUSED(COMMAND_RUN, "--data jump,", "--data 'jump,'", "a word is missing");
    REFUSED(COMMAND_RUN, "--data", "--data", "--data normal,jump");
    REFUSED(COMMAND_RUN, "--op qk --op pv --data jump", "--data 'jump'", "qk has normal",
            "pv has normal");
    REFUSED(COMMAND_CHECK, "--op softmax --data jump,x30", "--data 'x30'", "softmax has normal",
            "drift, jump");
    REFUSED(COMMAND_RUN, "--data jump --tensors a.npy,b.npy", "--data 'jump'", "--tensors");
    REFUSED(COMMAND_COMPARE, "a b --data jump", "compare does not take --data");
    REFUSED(COMMAND_RUN, "--mask foo", "--mask 'foo'", "none, causal, lengths, window:N");
    REFUSED(COMMAND_RUN, "--mask casual", "--mask 'casual'", "did you mean 'causal'?");
    static const char *const windows[] = {"window",
                                          "window:",
                                          "window:0",
                                          "window:-1",
                                          "window:x",
                                          "window:1x",
                                          "windows:4",
                                          "window:16777217",
                                          "window:N",
                                          "window:1:2",
                                          "window:99999999999999999999"};
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
        char line[64];
        snprintf(line, sizeof(line), "--mask none,%s", windows[i]);
        REFUSED(COMMAND_RUN, line, "--mask", windows[i], "1 to 16777216", "window:128");
    }
    REFUSED(COMMAND_RUN, "--kernel a,,b", "--kernel 'a,,b'", "empty");
    REFUSED(COMMAND_RUN, "--color pink", "--color 'pink'", "auto, always, never");
}

/// A word that the machine lacks is no bad usage.
static void known_isas_are_accepted(void **state) {
    (void)state;
    for (size_t i = 0; i < mha_isa_count(); i++) {
        char line[64];
        struct outcome o;
        snprintf(line, sizeof(line), "--isa %s --max-isa %s", mha_isa_status(i, NULL).isa,
                 mha_isa_status(i, NULL).isa);
        assert_accepted(&o, COMMAND_CHECK, line);
        assert_int_equal(o.options.isas.count, 1);
        assert_string_equal(o.options.isas.items[0], mha_isa_status(i, NULL).isa);
        assert_string_equal(o.options.max_isa, mha_isa_status(i, NULL).isa);
        done(&o);
    }
}

static void every_value_must_be_there(void **state) {
    (void)state;
    static const char *const names[] = {
        "--op",
        "--isa",
        "--kernel",
        "--dtype",
        "--preset",
        "--batch",
        "--heads",
        "--kv-heads",
        "--head-dim",
        "--seq",
        "--seq-q",
        "--seq-kv",
        "--mask",
        "--cache",
        "--threads",
        "--seed",
        "--plugin",
        "--max-isa",
        "--timeout",
        "--color",
        "--out",
        "--budget",
        "--launches",
        "--benchmark_min_time",
        "--benchmark_min_warmup_time",
        "--benchmark_context",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char line[128];
        REFUSED(COMMAND_RUN, names[i], names[i], "value is missing", "write it as in");
        snprintf(line, sizeof(line), "%s=", names[i]);
        REFUSED(COMMAND_RUN, line, names[i], "''", "value is missing");
        // The next option is not taken for a value.
        snprintf(line, sizeof(line), "%s --json", names[i]);
        REFUSED(COMMAND_RUN, line, names[i], "value is missing");
        struct outcome o = {.argc = 0};
        char *words[] = {(char *)names[i], (char *)""};
        take_words(&o, COMMAND_RUN, 2, words);
        assert_refused_words(&o, names[i],
                             (const char *const[]){names[i], "''", "value is missing", NULL});
        done(&o);
    }
}

static void unknown_options(void **state) {
    (void)state;
    REFUSED(COMMAND_RUN, "--head 3", "'--head'", "did you mean --heads?");
    REFUSED(COMMAND_RUN, "--presets=gpt3", "'--presets=gpt3'", "did you mean --preset?");
    REFUSED(COMMAND_RUN, "--maks causal", "'--maks'", "did you mean --mask?");
    REFUSED(COMMAND_RUN, "--vebrose", "'--vebrose'", "did you mean --verbose?");
    REFUSED(COMMAND_RUN, "--dropout 3", "'--dropout'", "unknown option", "run --help");
    REFUSED(COMMAND_RUN, "--foo", "'--foo'", "unknown option", "run --help");
    REFUSED(COMMAND_RUN, "-x", "'-x'", "unknown option");
    REFUSED(COMMAND_RUN, "-op qk", "'-op'", "did you mean --op?");
    REFUSED(COMMAND_RUN, "--=3", "'--=3'", "unknown option");
    REFUSED(COMMAND_CHECK, "--out x", "'--out'", "check does not take --out", "run, plot");
    REFUSED(COMMAND_CHECK, "--launches=3", "'--launches=3'", "belongs to run");
    REFUSED(COMMAND_PLOT, "a.json --op qk", "'--op'", "belongs to list, check, run");
    REFUSED(COMMAND_MACHINE, "--heads 3", "'--heads'", "machine does not take");
    REFUSED(COMMAND_RUN, "--json=3", "'--json=3'", "takes no value");
    REFUSED(COMMAND_RUN, "--help=3", "'--help=3'", "takes no value");
    REFUSED(COMMAND_RUN, "--resume=yes --out x", "'--resume=yes'", "takes no value");
    // Control characters do not break the line.
    struct outcome o = {.argc = 0};
    char *words[] = {(char *)"--op", (char *)"two\nlines\x1b[31m"};
    take_words(&o, COMMAND_RUN, 2, words);
    assert_refused_words(&o, "newline", (const char *const[]){"--op", "two?lines?[31m", NULL});
    done(&o);
    // What is right still stands behind a very long value.
    char *longest = calloc(100001, 1);
    assert_non_null(longest);
    memset(longest, 'x', 100000);
    words[1] = longest;
    take_words(&o, COMMAND_RUN, 2, words);
    assert_refused_words(&o, "long", (const char *const[]){"--op 'xxxx", "known are", NULL});
    done(&o);
    memset(longest, '9', 100000);
    words[0] = (char *)"--seq";
    take_words(&o, COMMAND_RUN, 2, words);
    assert_refused_words(&o, "long", (const char *const[]){"--seq '99", "16777216", NULL});
    done(&o);
    free(longest);
}

static void operands(void **state) {
    (void)state;
    struct outcome o;
    REFUSED(COMMAND_RUN, "foo", "'foo'", "takes options only", "run --help");
    REFUSED(COMMAND_CHECK, "qk", "'qk'", "--op qk");
    REFUSED(COMMAND_MACHINE, "-- --json", "'--json'", "takes options only");
    REFUSED(COMMAND_PLOT, "", "plot", "RESULT.json");
    REFUSED(COMMAND_PLOT, "a.json b.json", "'b.json'", "'a.json'", "one result file");
    assert_accepted(&o, COMMAND_PLOT, "a.json --out images");
    assert_int_equal(o.options.operands.count, 1);
    assert_string_equal(o.options.operands.items[0], "a.json");
    assert_string_equal(o.options.out, "images");
    done(&o);
    assert_accepted(&o, COMMAND_PLOT, "--out=images -- --odd.json");
    assert_string_equal(o.options.operands.items[0], "--odd.json");
    done(&o);
    // A lone dash is a file's name, not an option.
    assert_accepted(&o, COMMAND_PLOT, "-");
    assert_string_equal(o.options.operands.items[0], "-");
    assert_null(o.options.out);
    done(&o);
}

static void common_options(void **state) {
    (void)state;
    struct outcome o;
    assert_accepted(&o, COMMAND_RUN, "");
    assert_int_equal(o.options.command, COMMAND_RUN);
    assert_int_equal(o.options.seed, 1);
    assert_true(o.options.timeout_s > 0);
    assert_false(o.options.json || o.options.verbose || o.options.resume);
    assert_int_equal(o.options.color, COLOR_AUTO);
    assert_null(o.options.max_isa);
    assert_null(o.options.out);
    assert_true(o.options.budget_s == 0 && o.options.min_time_s == 0 && o.options.launches == 0);
    done(&o);
    assert_accepted(&o, COMMAND_RUN,
                    "--seed 18446744073709551615 --timeout 2.5 --json --verbose --color never "
                    "--resume --out=a=b.json --budget 1e2 --launches 7 --kernel qk_*,*_libxsmm");
    assert_true(o.options.seed == UINT64_MAX);
    assert_true(o.options.timeout_s == 2.5);
    assert_true(o.options.json && o.options.verbose && o.options.resume);
    assert_int_equal(o.options.color, COLOR_NEVER);
    assert_string_equal(o.options.out, "a=b.json");
    assert_true(o.options.budget_s == 100);
    assert_int_equal(o.options.launches, 7);
    assert_int_equal(o.options.kernels.count, 2);
    assert_string_equal(o.options.kernels.items[1], "*_libxsmm");
    done(&o);
    assert_accepted(&o, COMMAND_CHECK, "--color always --seed 5 --seed 6");
    assert_int_equal(o.options.color, COLOR_ALWAYS);
    assert_int_equal(o.options.seed, 6);
    done(&o);
    // A plug-in's name may hold a comma.
    char path[] = "/tmp/mhabench,XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    char line[128];
    snprintf(line, sizeof(line), "--plugin %s --plugin=%s", path, path);
    assert_accepted(&o, COMMAND_LIST, line);
    assert_int_equal(o.options.plugins.count, 2);
    assert_string_equal(o.options.plugins.items[1], path);
    done(&o);
    unlink(path);
    REFUSED(COMMAND_LIST, line, "--plugin", path, "No such file");
    REFUSED(COMMAND_RUN, "--seed -1", "--seed '-1'", "0 to 18446744073709551615");
    REFUSED(COMMAND_RUN, "--seed 18446744073709551616", "--seed '18446744073709551616'");
    REFUSED(COMMAND_RUN, "--seed 1x", "--seed '1x'");
    REFUSED(COMMAND_RUN, "--launches 0", "--launches '0'", "1 to 1000");
    REFUSED(COMMAND_RUN, "--launches 1001", "--launches '1001'", "1 to 1000");
    REFUSED(COMMAND_RUN, "--launches two", "--launches 'two'");
    REFUSED(COMMAND_RUN, "--resume", "--resume", "--out FILE");
    static const char *const seconds[] = {
        "0", "-1",    "x",  "1s",  "0x1p3", "inf", "nan", "1e999", "1,5",  "1e",      "1e+",
        ".", "1.2.3", "1 ", "2e6", "+1",    "1f",  "e5",  "--",    "1e-9", "INFINITY"};
    static const char *const names[] = {"--timeout", "--budget", "--benchmark_min_time"};
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
            char word[64];
            o.argc = 0;
            snprintf(word, sizeof(word), "%s=%s", names[n], seconds[i]);
            char *words[] = {word};
            take_words(&o, COMMAND_RUN, 1, words);
            assert_refused_words(
                &o, word, (const char *const[]){names[n], seconds[i], "number of seconds", NULL});
            done(&o);
        }
    }
}

static void google_benchmark_options(void **state) {
    (void)state;
    struct outcome o;
    assert_accepted(&o, COMMAND_RUN,
                    "--benchmark_min_time=0.25 --benchmark_min_warmup_time 0 "
                    "--benchmark_context=host=ci1,pr=7 --benchmark_context a=b=c");
    assert_true(o.options.min_time_s == 0.25);
    assert_int_equal(o.options.benchmark_args.count, 1);
    assert_string_equal(o.options.benchmark_args.items[0], "--benchmark_min_warmup_time=0");
    assert_int_equal(o.options.context.count, 3);
    assert_string_equal(o.options.context.items[0], "host=ci1");
    assert_string_equal(o.options.context.items[1], "pr=7");
    assert_string_equal(o.options.context.items[2], "a=b=c");
    done(&o);
    REFUSED(COMMAND_RUN, "--benchmark_filter=qk", "--benchmark_filter=qk", "--kernel", "--op");
    REFUSED(COMMAND_RUN, "--benchmark_repetitions 3", "--benchmark_repetitions", "--launches");
    REFUSED(COMMAND_RUN, "--benchmark_out=x", "--benchmark_out=x", "--out FILE");
    REFUSED(COMMAND_RUN, "--benchmark_out_format=csv", "--benchmark_out_format=csv", "JSON");
    REFUSED(COMMAND_RUN, "--benchmark_enable_random_interleaving=true",
            "--benchmark_enable_random_interleaving", "always interleaved");
    REFUSED(COMMAND_RUN, "--benchmark_list_tests", "--benchmark_list_tests", "not taken",
            "--benchmark_min_time");
    REFUSED(COMMAND_RUN, "--benchmark_min_tim 1", "--benchmark_min_tim", "--benchmark_min_time");
    REFUSED(COMMAND_CHECK, "--benchmark_min_time 1", "--benchmark_min_time", "only `mhabench run`");
    REFUSED(COMMAND_LIST, "--benchmark_filter=x", "--benchmark_filter=x", "only `mhabench run`");
    REFUSED(COMMAND_RUN, "--benchmark_min_time 0.1s", "--benchmark_min_time '0.1s'",
            "plain number");
    REFUSED(COMMAND_RUN, "--benchmark_min_warmup_time -1", "--benchmark_min_warmup_time '-1'");
    REFUSED(COMMAND_RUN, "--benchmark_context host", "--benchmark_context 'host'", "KEY=VALUE");
    REFUSED(COMMAND_RUN, "--benchmark_context a=1,", "--benchmark_context 'a=1,'", "KEY=VALUE");
    REFUSED(COMMAND_RUN, "--benchmark_context =1", "--benchmark_context '=1'", "KEY=VALUE");
    REFUSED(COMMAND_RUN, "--benchmark_context a=1,b=2,a=3", "--benchmark_context 'a=1,b=2,a=3'",
            "'a' is given twice");
}

static void steps_of_the_layer(void **state) {
    (void)state;
    struct outcome o;
    assert_accepted(&o, COMMAND_CHECK, "--with qk=a,softmax=b --with split=c");
    assert_int_equal(o.options.with.count, 3);
    assert_string_equal(o.options.with.items[0], "qk=a");
    assert_string_equal(o.options.with.items[1], "softmax=b");
    assert_string_equal(o.options.with.items[2], "split=c");
    done(&o);
    REFUSED(COMMAND_RUN, "--with qk", "--with 'qk'", "KEY=VALUE");
    REFUSED(COMMAND_RUN, "--with =a", "--with '=a'", "KEY=VALUE");
    REFUSED(COMMAND_RUN, "--with qk=", "--with 'qk='", "a name is missing");
    REFUSED(COMMAND_RUN, "--with qk=,softmax=b", "--with 'qk=,softmax=b'", "a name is missing");
    REFUSED(COMMAND_RUN, "--with gk=a", "--with 'gk=a'", "unknown step 'gk'", "did you mean 'qk'");
    REFUSED(COMMAND_RUN, "--with qk=a,qk=b", "--with 'qk=a,qk=b'", "'qk' is given twice");
    REFUSED(COMMAND_LIST, "--with qk=a", "--with", "check, run");
}

static void numbers_ignore_the_locale(void **state) {
    (void)state;
    // Any locale that writes 1,5; without one on this machine the parser is still held to '.'.
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            break;
        }
    }
    double seconds = 0;
    assert_true(seconds_parse("0.125", &seconds));
    assert_true(seconds == 0.125);
    assert_true(seconds_parse("5.", &seconds) && seconds == 5);
    assert_true(seconds_parse(".5", &seconds) && seconds == 0.5);
    assert_true(seconds_parse("1.5e-3", &seconds) && seconds == 1.5e-3);
    assert_true(seconds_parse("25E+1", &seconds) && seconds == 250);
    assert_false(seconds_parse("0,125", &seconds));
    assert_false(seconds_parse("1.000,5", &seconds));
    setlocale(LC_ALL, "C");
}

static void help_is_complete(void **state) {
    (void)state;
    struct outcome o;
    static const char *const common[] = {
        "usage: mhabench ", "--json",    "--color",     "--verbose",
        "--help",           "Examples:", "Exit codes:", "\n  mhabench "};
    static const char *const selection[] = {
        "--op ",    "--isa ",    "--kernel ",  "--dtype ",   "--preset ",   "--batch ",
        "--heads ", "--seq ",    "--seq-q ",   "--seq-kv ",  "--kv-heads ", "--head-dim ",
        "--mask ",  "--cache ",  "--data ",    "--threads ", "64:512:x2",   "64:512:+64",
        "--seed ",  "--plugin ", "--max-isa ", "--timeout "};
    static const char *const run[] = {"--out ",
                                      "--resume",
                                      "--budget ",
                                      "--launches ",
                                      "--benchmark_min_time ",
                                      "--benchmark_min_warmup_time ",
                                      "--benchmark_context "};
    for (enum command command = COMMAND_LIST; command <= COMMAND_PLOT; command++) {
        // --help wins over what stands behind it, and -h is the same.
        char *texts[2];
        for (int form = 0; form < 2; form++) {
            take(&o, command, form == 0 ? "--help --nonsense" : "-h");
            assert_int_equal(o.code, EXIT_DONE);
            assert_true(o.help);
            assert_string_equal(o.words, "");
            texts[form] = o.data;
            o.data = NULL;
            done(&o);
        }
        assert_string_equal(texts[0], texts[1]);
        for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
            assert_has("--help", texts[0], common[i]);
        }
        for (size_t i = 0; i < sizeof(selection) / sizeof(selection[0]); i++) {
            if (command <= COMMAND_RUN) {
                assert_has("--help", texts[0], selection[i]);
            }
        }
        for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
            if (command == COMMAND_RUN) {
                assert_has("run --help", texts[0], run[i]);
            }
        }
        for (size_t i = 0; command <= COMMAND_RUN && preset_get(i) != NULL; i++) {
            assert_has("--help", texts[0], preset_get(i)->name);
            assert_has("--help", texts[0], preset_get(i)->summary);
        }
        for (size_t i = 0; command <= COMMAND_RUN && i < op_count(); i++) {
            assert_has("--help", texts[0], op_get(i)->name);
        }
        // It fits a terminal.
        size_t column = 0;
        for (const char *c = texts[0]; *c != '\0'; c++) {
            column = *c == '\n' ? 0 : column + 1;
            assert_true(column <= 100);
        }
        free(texts[0]);
        free(texts[1]);
    }
    // The examples in the help are right.
    assert_accepted(&o, COMMAND_RUN,
                    "--heads 12,96 --head-dim 64,128 --seq 128:2048:x2 --budget 600");
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --seq-q 1 --seq-kv 4096 --cache hot,cold");
    done(&o);
    assert_accepted(&o, COMMAND_CHECK, "--op softmax --mask causal --seq 1:128:x2");
    done(&o);
    FILE *data = NULL;
    int saved = -1;
    capture(STDOUT_FILENO, &data, &saved);
    options_usage();
    char *text = captured(STDOUT_FILENO, data, saved);
    static const char *const commands[] = {"list", "check", "run", "machine", "plot", "selftest"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        char part[32];
        snprintf(part, sizeof(part), "\n  %s ", commands[i]);
        assert_has("usage", text, part);
    }
    free(text);
}

static void commands_are_found(void **state) {
    (void)state;
    enum command command = COMMAND_LIST;
    static const char *const words[] = {"list", "check", "run", "machine", "plot"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        assert_int_equal(options_command(words[i], &command), EXIT_DONE);
        assert_int_equal(command, i);
    }
    static const char *const wrong[] = {"chekc", "", "--help", "bench"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        FILE *file = NULL;
        int saved = -1;
        capture(STDERR_FILENO, &file, &saved);
        const int code = options_command(wrong[i], &command);
        char *text = captured(STDERR_FILENO, file, saved);
        assert_int_equal(code, EXIT_USAGE);
        assert_has(wrong[i], text, wrong[i]);
        assert_has(wrong[i], text, "list, check, run, machine, plot");
        if (i == 0) {
            assert_has(wrong[i], text, "did you mean 'check'?");
        }
        free(text);
    }
}

// --- the selection -------------------------------------------------------------------------------

static size_t count_of(const struct selection *selection, const char *op) {
    size_t count = 0;
    for (size_t i = 0; i < selection->count; i++) {
        count += strcmp(selection->problems[i].op, op) == 0;
    }
    return count;
}

static void assert_distinct_and_sound(const struct selection *selection) {
    for (size_t i = 0; i < selection->count; i++) {
        const struct problem *problem = &selection->problems[i];
        const struct op_driver *driver = op_find(problem->op);
        assert_non_null(driver);
        assert_ptr_equal(problem->op, driver->name);
        struct problem again = *problem;
        driver->normalise(&again);
        assert_true(problem_equal(problem, &again));
        assert_int_equal(problem->shape.heads % problem->shape.kv_heads, 0);
        assert_true(driver->has_mask || problem->mask == MHA_MASK_NONE);
        assert_true(problem->mask == MHA_MASK_WINDOW ? problem->window > 0 : problem->window == 0);
        for (size_t j = 0; j < i; j++) {
            assert_false(problem_equal(problem, &selection->problems[j]));
        }
    }
}

static void presets_expand(void **state) {
    (void)state;
    struct outcome o;
    for (size_t i = 0; preset_get(i) != NULL; i++) {
        char line[64];
        snprintf(line, sizeof(line), "--preset %s", preset_get(i)->name);
        assert_accepted(&o, COMMAND_RUN, line);
        assert_distinct_and_sound(&o.selection);
        for (size_t op = 0; op < op_count(); op++) {
            const size_t count = count_of(&o.selection, op_get(op)->name);
            assert_true(op_get(op)->ceiling ? count == 0 : count > 0);
        }
        done(&o);
    }
    // The figures of the models.
    static const struct {
        const char *line;
        struct mha_shape shapes[4];
    } models[] = {
        {"--preset bert",
         {{1, 12, 12, 128, 128, 64}, {1, 12, 12, 512, 512, 64}, {1, 12, 12, 2048, 2048, 64}}},
        {"--preset gpt2",
         {{1, 12, 12, 128, 128, 64}, {1, 12, 12, 512, 512, 64}, {1, 12, 12, 2048, 2048, 64}}},
        {"--preset gpt3",
         {{1, 96, 96, 128, 128, 128}, {1, 96, 96, 512, 512, 128}, {1, 96, 96, 2048, 2048, 128}}},
        {"--preset llama3",
         {{1, 32, 8, 128, 128, 128}, {1, 32, 8, 512, 512, 128}, {1, 32, 8, 2048, 2048, 128}}},
        {"", {{1, 12, 12, 128, 128, 64}, {1, 32, 8, 128, 128, 128}, {1, 96, 96, 128, 128, 128}}},
    };
    for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++) {
        char line[64];
        snprintf(line, sizeof(line), "--op qk %s", models[m].line);
        assert_accepted(&o, COMMAND_RUN, line);
        size_t count = 0;
        for (; count < 4 && models[m].shapes[count].batch > 0; count++) {
            const struct problem want = {
                .op = "qk", .dtype = "f32", .shape = models[m].shapes[count]};
            assert_true(count < o.selection.count);
            assert_true(problem_equal(&o.selection.problems[count], &want));
        }
        assert_int_equal(o.selection.count, count);
        done(&o);
    }
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset grid");
    assert_int_equal(o.selection.count, 9 * 5);
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset lengths");
    assert_int_equal(o.selection.problems[0].shape.seq_q, 1);
    assert_int_equal(o.selection.problems[o.selection.count - 1].shape.seq_kv, 8192);
    for (size_t seq = 1; seq <= 8192; seq *= 2) {
        bool there = false;
        for (size_t i = 0; i < o.selection.count; i++) {
            there = there || o.selection.problems[i].shape.seq_q == seq;
        }
        assert_true(there);
    }
    done(&o);
}

static void edge_preset_is_hostile(void **state) {
    (void)state;
    struct outcome o, same;
    assert_accepted(&o, COMMAND_CHECK, "--op qk --dtype f32");
    assert_accepted(&same, COMMAND_CHECK, "--op qk --dtype f32 --preset edge");
    assert_int_equal(o.selection.count, same.selection.count);
    assert_true(o.selection.count >= 20 && o.selection.count <= 40);
    bool wanted[] = {false, false, false, false, false, false, false};
    for (size_t i = 0; i < o.selection.count; i++) {
        const struct mha_shape *s = &o.selection.problems[i].shape;
        wanted[0] = wanted[0] || s->seq_q > s->seq_kv;
        wanted[1] = wanted[1] || s->seq_q < s->seq_kv;
        wanted[2] = wanted[2] || s->seq_kv == 0;
        wanted[3] = wanted[3] || (s->seq_q == 1 && s->seq_kv > 100);
        wanted[4] = wanted[4] || s->heads > s->kv_heads;
        wanted[5] = wanted[5] || s->batch > 1;
        wanted[6] = wanted[6] || s->head_dim == 1;
    }
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        assert_true(wanted[i]);
    }
    static const size_t dims[] = {1, 3, 16, 37, 40, 64, 80, 96, 100, 128};
    for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++) {
        bool there = false;
        for (size_t i = 0; i < o.selection.count; i++) {
            there = there || o.selection.problems[i].shape.head_dim == dims[d];
        }
        assert_true(there);
    }
    done(&o);
    done(&same);
    assert_accepted(&o, COMMAND_CHECK, "--op softmax");
    bool masks[] = {false, false, false, false};
    bool hidden = false;
    for (size_t i = 0; i < o.selection.count; i++) {
        const struct problem *problem = &o.selection.problems[i];
        masks[problem->mask] = true;
        const struct mha_mask mask = {problem->mask, problem->shape.seq_q, problem->shape.seq_kv,
                                      problem->shape.seq_kv, problem->window};
        const struct mha_span span = mha_row_span(&mask, 0);
        hidden = hidden || (problem->shape.seq_kv > 0 && span.begin == span.end);
    }
    assert_true(masks[0] && masks[1] && masks[2] && masks[3]);
    assert_true(hidden);  // some rows see no key
    done(&o);
}

static void axes_replace_the_presets(void **state) {
    (void)state;
    struct outcome o;
    // All axes given: one problem per op and mask.
    assert_accepted(&o, COMMAND_RUN, "--op qk --heads 96 --head-dim 128 --seq 512");
    assert_int_equal(o.selection.count, 1);
    const struct problem gpt3 = {.op = "qk", .dtype = "f32", .shape = {1, 96, 96, 512, 512, 128}};
    assert_true(problem_equal(&o.selection.problems[0], &gpt3));
    done(&o);
    // A check is of every dtype that the op takes.
    assert_accepted(&o, COMMAND_CHECK, "--op qk --batch 1 --heads 8 --head-dim 64 --seq 512");
    assert_int_equal(o.selection.count, 3);
    assert_int_equal(o.selection.problems[0].shape.kv_heads, 8);
    assert_string_equal(o.selection.problems[0].dtype, "f32");
    assert_string_equal(o.selection.problems[1].dtype, "bf16");
    assert_string_equal(o.selection.problems[2].dtype, "f16");
    done(&o);
    assert_accepted(&o, COMMAND_CHECK, "--op softmax --batch 1 --heads 8 --seq 512 --mask none");
    assert_int_equal(o.selection.count, 1);
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --heads 8 --head-dim 64 --seq 512 --dtype bf16,f32");
    assert_int_equal(o.selection.count, 2);
    done(&o);
    // Of all ops those that take it.
    assert_accepted(&o, COMMAND_RUN, "--dtype f16 --heads 8 --head-dim 64 --seq 512 --mask none");
    for (size_t i = 0; i < o.selection.count; i++) {
        assert_string_equal(o.selection.problems[i].dtype, "f16");
        assert_true(op_takes(op_find(o.selection.problems[i].op), ELEMENT_F16));
    }
    done(&o);
    // --seq pairs; --seq-q and --seq-kv multiply.
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset gpt3 --seq 5,7");
    assert_int_equal(o.selection.count, 2);
    assert_int_equal(o.selection.problems[1].shape.seq_q, 7);
    assert_int_equal(o.selection.problems[1].shape.seq_kv, 7);
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset gpt3 --seq-q 5,7 --seq-kv 0,9,11");
    assert_int_equal(o.selection.count, 6);
    done(&o);
    // One of the two alone: the other stays the preset's.
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset gpt3 --seq-q 1");
    assert_int_equal(o.selection.count, 3);
    assert_int_equal(o.selection.problems[2].shape.seq_q, 1);
    assert_int_equal(o.selection.problems[2].shape.seq_kv, 2048);
    done(&o);
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset gpt3 --seq-kv 9");
    assert_int_equal(o.selection.count, 3);
    assert_int_equal(o.selection.problems[0].shape.seq_q, 128);
    assert_int_equal(o.selection.problems[0].shape.seq_kv, 9);
    done(&o);
    // Several presets add up, and what they share is there once.
    assert_accepted(&o, COMMAND_RUN, "--op qk --preset bert,gpt2 --preset gpt2");
    assert_int_equal(o.selection.count, 3);
    done(&o);
    REFUSED(COMMAND_RUN, "--seq 4 --seq-q 3", "--seq '4'", "--seq-q '3'", "either");
    REFUSED(COMMAND_RUN, "--seq-kv 3 --seq 4", "--seq '4'", "--seq-kv '3'", "either");
    REFUSED(COMMAND_RUN, "--seq 1:4096:+1 --heads 1:4096:+1", "100000", "fewer");
    REFUSED(COMMAND_RUN, "--seq-q 1:4096:+1 --seq-kv 1:4096:+1", "100000", "fewer");
    REFUSED(COMMAND_RUN, "--batch 1:4096:+1 --head-dim 1:4096:+1 --seq-q 1:4096:+1", "100000");
    REFUSED(COMMAND_RUN, "--heads 1:4096:+1 --kv-heads 1:4096:+1 --batch 1:4096:+1", "100000");
}

static void kv_heads_follow(void **state) {
    (void)state;
    struct outcome o;
    static const struct {
        const char *line;
        size_t heads, kv_heads;
    } cases[] = {
        {"--preset llama3 --heads 64 --seq 8", 64, 8},  // grouping kept where it fits
        {"--preset llama3 --heads 12 --seq 8", 12, 12},
        {"--preset bert --heads 24 --seq 8", 24, 24},  // no grouping comes out of nowhere
        {"--preset grid --heads 12 --head-dim 64", 12, 12},
        {"--preset llama3 --kv-heads 4 --seq 8", 32, 4},
        {"--heads 32 --head-dim 64 --seq 8", 32, 32},  // the default preset has no say in it
        {"--heads 6 --kv-heads 3 --head-dim 64 --seq 8", 6, 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "--op qk %s", cases[i].line);
        assert_accepted(&o, COMMAND_RUN, line);
        assert_int_equal(o.selection.count, 1);
        assert_int_equal(o.selection.problems[0].shape.heads, cases[i].heads);
        assert_int_equal(o.selection.problems[0].shape.kv_heads, cases[i].kv_heads);
        done(&o);
    }
    // What does not divide is left out of a product, and that is said.
    take(&o, COMMAND_RUN, "--op qk --heads 8,12 --kv-heads 3,4 --head-dim 64 --seq 8");
    assert_int_equal(o.code, EXIT_DONE);
    assert_int_equal(o.selection.count, 3);
    assert_has("note", o.words, "mhabench: note: left out");
    done(&o);
    REFUSED(COMMAND_RUN, "--heads 12 --kv-heads 5", "--heads '12'", "--kv-heads '5'", "multiple");
    REFUSED(COMMAND_RUN, "--heads 4 --kv-heads 8", "--heads '4'", "--kv-heads '8'", "multiple");
    REFUSED(COMMAND_RUN, "--kv-heads 7", "--kv-heads '7'", "multiple");
    REFUSED(COMMAND_RUN, "--heads 4,8 --kv-heads 5,7", "--kv-heads '7'", "multiple");
}

/// Position encodings that an op is run in when none is asked for.
static size_t own_positions(const struct op_driver *driver) {
    size_t count = 1;
    for (const char *c = driver->positions ? driver->default_positions : ""; *c != '\0'; c++) {
        count += *c == ',';
    }
    return count;
}

static void masks_and_caches(void **state) {
    (void)state;
    struct outcome o;
    for (size_t i = 0; i < op_count(); i++) {
        const struct op_driver *driver = op_get(i);
        char line[160];
        // An op without masks runs once, whatever mask is asked for.
        snprintf(line, sizeof(line), "--op %s --batch 1 --heads 2 --head-dim 8 --seq 4 --mask %s",
                 driver->name, "causal,window:2,lengths,causal");
        assert_accepted(&o, COMMAND_RUN, line);
        const size_t positions = own_positions(driver);
        assert_int_equal(o.selection.count, (driver->has_mask ? 3 : 1) * positions);
        assert_int_equal(o.selection.problems[0].mask,
                         driver->has_mask ? MHA_MASK_CAUSAL : MHA_MASK_NONE);
        assert_distinct_and_sound(&o.selection);
        done(&o);
        snprintf(line, sizeof(line), "--op %s --heads 2 --head-dim 8 --seq 4 --mask none %s",
                 driver->name, "--cache cold,hot,cold");
        assert_accepted(&o, COMMAND_RUN, line);
        assert_int_equal(o.selection.count, 2 * positions);
        assert_int_equal(o.selection.problems[0].cache, CACHE_COLD);
        assert_int_equal(o.selection.problems[positions].cache, CACHE_HOT);
        done(&o);
    }
    assert_accepted(&o, COMMAND_RUN, "--op softmax --heads 2 --seq 4 --mask window:16777216");
    assert_int_equal(o.selection.problems[0].window, 16777216);
    done(&o);
}

static void data_classes(void **state) {
    (void)state;
    struct outcome o;
    const char *shape = "--batch 1 --heads 2 --kv-heads 2 --head-dim 8 --seq 4 --mask none";
    char line[200];
    // An op that lacks a class is left out where another has it; the default is no class.
    snprintf(line, sizeof(line), "--op qk,softmax,pv %s --data jump,normal,jump,x30", shape);
    assert_accepted(&o, COMMAND_RUN, line);
    assert_int_equal(o.selection.count, 5);
    static const struct {
        const char *op, *data;
    } wanted[] = {
        {"qk", NULL}, {"qk", "x30"}, {"softmax", "jump"}, {"softmax", NULL}, {"pv", NULL}};
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(o.selection.problems[i].op, wanted[i].op);
        assert_true((o.selection.problems[i].data == NULL) == (wanted[i].data == NULL));
        if (wanted[i].data != NULL) {
            assert_string_equal(o.selection.problems[i].data, wanted[i].data);
        }
    }
    assert_distinct_and_sound(&o.selection);
    done(&o);
    // check takes all classes by itself, so that the first one alone is a choice there.
    snprintf(line, sizeof(line), "--op softmax %s --data normal,drift", shape);
    assert_accepted(&o, COMMAND_CHECK, line);
    assert_int_equal(o.selection.count, 2);
    assert_string_equal(o.selection.problems[0].data, "normal");
    assert_string_equal(o.selection.problems[1].data, "drift");
    done(&o);
    // Every class of every op can be named, and without a choice there is none.
    for (size_t i = 0; i < op_count(); i++) {
        const struct op_driver *driver = op_get(i);
        for (size_t c = 0; driver->classes[c] != NULL; c++) {
            snprintf(line, sizeof(line), "--op %s %s --data %s", driver->name, shape,
                     driver->classes[c]);
            assert_accepted(&o, COMMAND_RUN, line);
            assert_int_equal(o.selection.count, own_positions(driver));
            assert_true((o.selection.problems[0].data == NULL) == (c == 0));
            done(&o);
        }
        snprintf(line, sizeof(line), "--op %s %s", driver->name, shape);
        assert_accepted(&o, COMMAND_CHECK, line);
        assert_null(o.selection.problems[0].data);
        done(&o);
    }
}

/// By shape, then by rank of the op, then mask, then cache; the same again.
static void order_is_fixed(void **state) {
    (void)state;
    struct outcome o, again;
    const char *line = "--op softmax,qk --heads 2,3 --head-dim 8 --seq 4 --mask causal,none";
    assert_accepted(&o, COMMAND_RUN, line);
    assert_accepted(&again, COMMAND_RUN,
                    "--mask causal,none --op qk --op softmax --seq 4 "
                    "--head-dim 8 --heads 2,3");
    assert_int_equal(o.selection.count, 6);
    assert_int_equal(again.selection.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct problem *problem = &o.selection.problems[i];
        assert_true(problem_equal(problem, &again.selection.problems[i]));
        assert_int_equal(problem->shape.heads, i < 3 ? 2 : 3);
        assert_string_equal(problem->op, i % 3 == 0 ? "qk" : "softmax");
        assert_int_equal(problem->mask, i % 3 == 1 ? MHA_MASK_CAUSAL : MHA_MASK_NONE);
    }
    done(&o);
    done(&again);
}

static void thousands_of_problems_stay_distinct(void **state) {
    (void)state;
    struct outcome o;
    // 60 x 60 shapes for qk; softmax does not see head_dim, and has 60.
    assert_accepted(&o, COMMAND_RUN,
                    "--op qk,softmax --heads 2 --seq 1:60:+1 --head-dim 1:60:+1 "
                    "--mask none");
    assert_int_equal(count_of(&o.selection, "qk"), 3600);
    assert_int_equal(count_of(&o.selection, "softmax"), 60);
    assert_distinct_and_sound(&o.selection);
    done(&o);
}

/// What problem_options() writes names exactly that problem again.
static void repro_lines_name_one_problem(void **state) {
    (void)state;
    struct outcome all, one;
    static const char *const lines[] = {"--preset edge --cache hot,cold", "--preset quick",
                                        "--op peak,read,write,copy --batch 2 --seq-kv 4096"};
    for (size_t l = 0; l < sizeof(lines) / sizeof(lines[0]); l++) {
        assert_accepted(&all, COMMAND_CHECK, lines[l]);
        assert_true(all.selection.count > 0);
        for (size_t i = 0; i < all.selection.count; i++) {
            char line[512];
            problem_options(line, sizeof(line), &all.selection.problems[i]);
            for (enum command command = COMMAND_CHECK; command <= COMMAND_RUN; command++) {
                assert_accepted(&one, command, line);
                assert_int_equal(one.selection.count, 1);
                assert_true(problem_equal(&one.selection.problems[0], &all.selection.problems[i]));
                done(&one);
            }
        }
        done(&all);
    }
}

// --- the helpers below ---------------------------------------------------------------------------

static void distances(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"heads", "heads", 0},
        {"head", "heads", 1},
        {"heads", "head", 1},
        {"hesds", "heads", 1},
        {"haeds", "heads", 1},
        {"op", "po", 1},
        {"ab", "", 2},
        {"", "ab", 2},
        {"abc", "", 3},
        {"", "abcdef", 3},
        {"abcd", "badc", 2},
        {"kitten", "sitting", 3},
        {"seq_q", "seq-q", 1},
        {"abcdef", "ghijkl", 3},
        {"xheads", "heads", 1},
        {"a", "b", 1},
        {"aab", "aba", 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(words_distance(cases[i].a, cases[i].b), cases[i].distance);
    }
}

static void worst_codes(void **state) {
    (void)state;
    // Each wins over those behind it.
    static const int order[] = {EXIT_USAGE, EXIT_FOUND, EXIT_INCONCLUSIVE, EXIT_CANNOT_RUN,
                                EXIT_DONE};
    for (size_t i = 0; i < 5; i++) {
        for (size_t j = 0; j < 5; j++) {
            assert_int_equal(diag_worst(order[i], order[j]), order[i < j ? i : j]);
        }
    }
}

static void messages_are_one_line(void **state) {
    (void)state;
    FILE *file = NULL;
    int saved = -1;
    char *longest = calloc(10001, 1);
    assert_non_null(longest);
    memset(longest, 'a', 10000);
    capture(STDERR_FILENO, &file, &saved);
    diag_note("tab\tand %d\n", 7);
    diag_error("caf\xc3\xa9 %s", longest);
    char *text = captured(STDERR_FILENO, file, saved);
    assert_has("note", text, "mhabench: note: tab?and 7?\nmhabench: caf\xc3\xa9 aaa");
    const size_t length = strlen(text);
    assert_true(length < 10000);
    assert_string_equal(text + length - 5, "a...\n");
    free(text);
    free(longest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_ranges),
        cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(thread_counts),
        cmocka_unit_test(wrong_words),
        cmocka_unit_test(known_isas_are_accepted),
        cmocka_unit_test(every_value_must_be_there),
        cmocka_unit_test(unknown_options),
        cmocka_unit_test(operands),
        cmocka_unit_test(common_options),
        cmocka_unit_test(google_benchmark_options),
        cmocka_unit_test(steps_of_the_layer),
        cmocka_unit_test(numbers_ignore_the_locale),
        cmocka_unit_test(help_is_complete),
        cmocka_unit_test(commands_are_found),
        cmocka_unit_test(presets_expand),
        cmocka_unit_test(edge_preset_is_hostile),
        cmocka_unit_test(axes_replace_the_presets),
        cmocka_unit_test(kv_heads_follow),
        cmocka_unit_test(masks_and_caches),
        cmocka_unit_test(data_classes),
        cmocka_unit_test(order_is_fixed),
        cmocka_unit_test(thousands_of_problems_stay_distinct),
        cmocka_unit_test(repro_lines_name_one_problem),
        cmocka_unit_test(distances),
        cmocka_unit_test(worst_codes),
        cmocka_unit_test(messages_are_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
