/// Reads the command line by the table of options.
#include "options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "machine.h"
#include "numbers.h"
#include "option_table.h"
#include "words.h"

/// Shortest and longest time that an option takes: below is none at all, and poll() counts
/// milliseconds in an int.
static const double seconds_min = 1e-6, seconds_max = 1e6;

/// Room for a list of known words.
enum { WORDS_BYTES = 512 };

/// One occurrence of an option.
struct given {
    struct options *options;
    const struct option_spec *spec;
    const char *value;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct given *given,
                                                        const char *format, ...) {
    char why[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    // Enough of a long value to recognise it; the advice behind it matters more.
    const char *cut = strlen(given->value) > 200 ? "..." : "";
    diag_error("--%s '%.200s%s': %s", given->spec->name, given->value, cut, why);
    return EXIT_USAGE;
}

static void *member(const struct given *given) {
    return (char *)given->options + given->spec->offset;
}

static bool is_known(const char *word, word_fn *known) {
    for (size_t i = 0; known(i) != NULL; i++) {
        if (strcmp(word, known(i)) == 0) {
            return true;
        }
    }
    return false;
}

/// Refuses a word that is not among the known ones; `what` is what it should have been.
static int refuse_unknown(const struct given *given, const char *what, const char *word) {
    char all[WORDS_BYTES];
    words_join(all, sizeof(all), given->spec->known);
    const char *nearest = words_nearest(word, given->spec->known);
    if (word[0] == '\0') {
        return refuse(given, "a word is missing; known are %s", all);
    }
    if (nearest != NULL) {
        return refuse(given, "unknown %s '%.40s', did you mean '%s'? Known are %s", what, word,
                      nearest, all);
    }
    return refuse(given, "unknown %s '%.40s'; known are %s", what, word, all);
}

static int refuse_word(const struct given *given, const char *word) {
    return refuse_unknown(given, given->spec->name, word);
}

/// Tells whether the words of a list option may hold `word`; prints why not.
static int check_word(const struct given *given, const char *word) {
    struct problem problem;
    if (given->spec->offset == offsetof(struct options, masks)) {
        if (problem_mask_parse(&problem, word)) {
            return EXIT_DONE;
        }
        if (strncmp(word, "window", strlen("window")) == 0) {
            return refuse(given, "a window is 1 to %d keys, as in window:128", WINDOW_MAX);
        }
        return refuse_word(given, word);
    }
    if (given->spec->offset == offsetof(struct options, positions)) {
        return problem_position_parse(&problem, word) ? EXIT_DONE : refuse_word(given, word);
    }
    if (given->spec->known != NULL && !is_known(word, given->spec->known)) {
        return refuse_word(given, word);
    }
    if (word[0] == '\0') {
        return refuse(given, "a part of the list is empty; write it as in --%s %s",
                      given->spec->name, given->spec->example);
    }
    return EXIT_DONE;
}

static int take_words(const struct given *given) {
    struct string_list *list = member(given);
    for (const char *start = given->value;;) {
        const size_t length = strcspn(start, ",");
        string_list_add(list, start, length);
        const int code = check_word(given, list->items[list->count - 1]);
        if (code != EXIT_DONE) {
            return code;
        }
        if (start[length] == '\0') {
            return EXIT_DONE;
        }
        start += length + 1;
    }
}

/// Checks a pair whose key must be one of the known words, and whose value must not be empty.
static int check_pair(const struct given *given, const char *pair, size_t equals, size_t length) {
    char key[WORDS_BYTES];
    snprintf(key, sizeof(key), "%.*s", (int)(equals < sizeof(key) ? equals : sizeof(key) - 1),
             pair);
    if (!is_known(key, given->spec->known)) {
        return refuse_unknown(given, "step", key);
    }
    if (equals + 1 == length) {
        return refuse(given, "behind '%s=' a name is missing; write it as in --%s %s", key,
                      given->spec->name, given->spec->example);
    }
    return EXIT_DONE;
}

static int take_pairs(const struct given *given) {
    struct string_list *list = member(given);
    for (const char *start = given->value;;) {
        const size_t length = strcspn(start, ",");
        const char *equals = memchr(start, '=', length);
        if (equals == NULL || equals == start) {
            return refuse(given, "'%.*s' is no KEY=VALUE; write it as in --%s %s",
                          length < 40 ? (int)length : 40, start, given->spec->name,
                          given->spec->example);
        }
        const size_t key = (size_t)(equals - start) + 1;
        for (size_t i = 0; i < list->count; i++) {
            if (strncmp(list->items[i], start, key) == 0) {
                return refuse(given, "the key '%.*s' is given twice; give each key once",
                              key < 40 ? (int)key - 1 : 40, start);
            }
        }
        if (given->spec->known != NULL) {
            const int code = check_pair(given, start, key - 1, length);
            if (code != EXIT_DONE) {
                return code;
            }
        }
        string_list_add(list, start, length);
        if (start[length] == '\0') {
            return EXIT_DONE;
        }
        start += length + 1;
    }
}

static int take_sizes(const struct given *given) {
    char why[WHY_BYTES];
    const struct option_spec *spec = given->spec;
    if (sizes_parse(member(given), given->value, spec->min, spec->max, spec->all, why)) {
        return EXIT_DONE;
    }
    if (spec->all != NULL) {
        // Once more, for the message: it tells what this process may use, which options_select()
        // holds against.
        struct size_list list = {0};
        sizes_parse(&list, given->value, spec->min, machine_threads_allowed(), spec->all, why);
        size_list_free(&list);
    }
    return refuse(given, "%s", why);
}

static int take_size(const struct given *given) {
    const struct option_spec *spec = given->spec;
    uint64_t value = 0;
    if (number_parse(given->value, strlen(given->value), &value) != NUMBER_FINE ||
        value < spec->min || value > spec->max) {
        return refuse(given, "give a whole number from %zu to %zu", spec->min, spec->max);
    }
    *(size_t *)member(given) = (size_t)value;
    return EXIT_DONE;
}

static int take_seed(const struct given *given) {
    uint64_t value = 0;
    if (number_parse(given->value, strlen(given->value), &value) != NUMBER_FINE) {
        return refuse(given, "give a whole number from 0 to %llu", (unsigned long long)UINT64_MAX);
    }
    *(uint64_t *)member(given) = value;
    return EXIT_DONE;
}

/// Reads seconds of at least `min`.
static int read_seconds(const struct given *given, double min, double *seconds) {
    if (!seconds_parse(given->value, seconds) || !(*seconds >= min && *seconds <= seconds_max)) {
        return refuse(given, "give a plain number of seconds from %g to %g, as in --%s %s", min,
                      seconds_max, given->spec->name, given->spec->example);
    }
    return EXIT_DONE;
}

static int take_seconds(const struct given *given) {
    double seconds = 0;
    const int code = read_seconds(given, seconds_min, &seconds);
    if (code == EXIT_DONE) {
        *(double *)member(given) = seconds;
    }
    return code;
}

static int take_pass(const struct given *given) {
    double seconds = 0;
    const int code = read_seconds(given, 0, &seconds);
    if (code == EXIT_DONE) {
        char text[WORDS_BYTES];
        const int length = snprintf(text, sizeof(text), "--%s=%s", given->spec->name, given->value);
        if (length < 0 || (size_t)length >= sizeof(text)) {
            return refuse(given, "too many digits; write it as in --%s %s", given->spec->name,
                          given->spec->example);
        }
        string_list_add(member(given), text, (size_t)length);
    }
    return code;
}

static int take_word(const struct given *given) {
    if (!is_known(given->value, given->spec->known)) {
        return refuse_word(given, given->value);
    }
    *(const char **)member(given) = given->value;
    return EXIT_DONE;
}

static int take_color(const struct given *given) {
    for (enum color_mode mode = COLOR_AUTO; mode <= COLOR_NEVER; mode++) {
        if (strcmp(given->value, given->spec->known(mode)) == 0) {
            *(enum color_mode *)member(given) = mode;
            return EXIT_DONE;
        }
    }
    return refuse_word(given, given->value);
}

static int take_gate(const struct given *given) {
    for (enum comparison_gate gate = GATE_SLOWER; gate <= GATE_NONE; gate++) {
        if (strcmp(given->value, given->spec->known(gate)) == 0) {
            *(enum comparison_gate *)member(given) = gate;
            return EXIT_DONE;
        }
    }
    return refuse_word(given, given->value);
}

static int take_percent(const struct given *given) {
    double percent = 0;
    // The numbers of a duration and of a percentage are written alike.
    if (!seconds_parse(given->value, &percent) || !(percent >= 0 && percent <= 100)) {
        return refuse(given, "give a plain number from 0 to 100, as in --%s %s", given->spec->name,
                      given->spec->example);
    }
    *(double *)member(given) = percent / 100;
    return EXIT_DONE;
}

static int take_file(const struct given *given) {
    if (access(given->value, R_OK) != 0) {
        return refuse(given, "%s; give a readable shared object", strerror(errno));
    }
    string_list_add(member(given), given->value, strlen(given->value));
    return EXIT_DONE;
}

/// Reads the value of an option that has one.
static int take(const struct given *given) {
    switch (given->spec->kind) {
        case OPTION_TEXT:
            *(const char **)member(given) = given->value;
            return EXIT_DONE;
        case OPTION_WORDS:
            return take_words(given);
        case OPTION_WORD:
            return take_word(given);
        case OPTION_FILES:
            return take_file(given);
        case OPTION_SIZES:
            return take_sizes(given);
        case OPTION_SIZE:
            return take_size(given);
        case OPTION_SEED:
            return take_seed(given);
        case OPTION_SECONDS:
            return take_seconds(given);
        case OPTION_COLOR:
            return take_color(given);
        case OPTION_GATE:
            return take_gate(given);
        case OPTION_PERCENT:
            return take_percent(given);
        case OPTION_PAIRS:
            return take_pairs(given);
        case OPTION_PASS:
            return take_pass(given);
        case OPTION_FLAG:
        case OPTION_HELP:
            break;
    }
    return EXIT_DONE;
}

/// Refuses an option of Google Benchmark that is not among ours.
static int refuse_benchmark(enum command command, const char *name, const char *word) {
    static const struct {
        const char *name, *instead;
    } ours[] = {
        {"benchmark_filter", "select with --kernel GLOB or --op OP"},
        {"benchmark_repetitions", "use --launches N"},
        {"benchmark_out", "use --out FILE"},
        {"benchmark_out_format", "the result file is always JSON; use --out FILE, or --json"},
        {"benchmark_enable_random_interleaving", "samples are always interleaved at random"},
    };
    if (command != COMMAND_RUN) {
        diag_error("'%.200s': only `mhabench run` takes options of Google Benchmark", word);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(name, ours[i].name) == 0) {
            diag_error("'%.200s': not taken, since mhabench schedules and reports itself; %s", word,
                       ours[i].instead);
            return EXIT_USAGE;
        }
    }
    diag_error(
        "'%.200s': not taken; of Google Benchmark's options, run takes "
        "--benchmark_min_time, --benchmark_min_warmup_time and --benchmark_context",
        word);
    return EXIT_USAGE;
}

static const struct option_spec *find_option(enum command command, const char *name) {
    for (size_t i = 0; option_get(i) != NULL; i++) {
        const struct option_spec *spec = option_get(i);
        if ((spec->commands & FOR(command)) != 0 && strcmp(spec->name, name) == 0) {
            return spec;
        }
    }
    return NULL;
}

/// Gets the commands that take an option of this name.
static unsigned takers_of(const char *name) {
    unsigned commands = 0;
    for (size_t i = 0; option_get(i) != NULL; i++) {
        commands |= strcmp(option_get(i)->name, name) == 0 ? option_get(i)->commands : 0;
    }
    return commands;
}

/// Finds the option of this command that is nearest to `name`; NULL when none is near.
static const char *nearest_option(enum command command, const char *name) {
    const char *nearest = NULL;
    size_t best = WORDS_NEAR + 1;
    for (size_t i = 0; option_get(i) != NULL; i++) {
        const struct option_spec *spec = option_get(i);
        const size_t distance = words_distance(name, spec->name);
        if ((spec->commands & FOR(command)) != 0 && distance < best &&
            distance < strlen(spec->name)) {
            best = distance;
            nearest = spec->name;
        }
    }
    return nearest;
}

static int refuse_option(enum command command, const char *name, const char *word) {
    const char *own = option_command_word(command);
    const unsigned takers = takers_of(name);
    const char *nearest = nearest_option(command, name);
    if (strncmp(name, "benchmark_", strlen("benchmark_")) == 0) {
        return refuse_benchmark(command, name, word);
    }
    if (takers != 0 && (takers & FOR(command)) == 0) {
        char text[64] = "";
        for (size_t c = 0; option_command_word(c) != NULL; c++) {
            if ((takers & FOR(c)) != 0) {
                const size_t length = strlen(text);
                snprintf(text + length, sizeof(text) - length, "%s%s", length > 0 ? ", " : "",
                         option_command_word(c));
            }
        }
        // One letter off an option of this command, as --head is off --heads.
        const bool slip = nearest != NULL && words_distance(name, nearest) == 1;
        diag_error("'%.200s': %s does not take --%s; it belongs to %s%s%s%s", word, own, name, text,
                   slip ? "; did you mean --" : "", slip ? nearest : "", slip ? "?" : "");
    } else if (nearest != NULL) {
        diag_error("'%.200s': unknown option, did you mean --%s?", word, nearest);
    } else {
        diag_error("'%.200s': unknown option; `mhabench %s --help` lists those of %s", word, own,
                   own);
    }
    return EXIT_USAGE;
}

/// Words of the command line that are still to be read.
struct words {
    int count;
    char **items;
};

/// Reads one option, and its value when that is the next word.
static int parse_option(struct options *options, const char *word, struct words *rest, bool *help) {
    const char *equals = strchr(word, '=');
    char *name = NULL;
    if (strncmp(word, "--", 2) == 0) {
        name = equals != NULL ? strndup(word + 2, (size_t)(equals - word) - 2) : strdup(word + 2);
    } else {
        name = strdup(strcmp(word, "-h") == 0 ? "help" : word + 1);
    }
    diag_alloc(name);
    const struct option_spec *spec = find_option(options->command, name);
    // Only -h is known with one dash.
    if (spec == NULL || (word[1] != '-' && strcmp(word, "-h") != 0)) {
        const int code = refuse_option(options->command, name, word);
        free(name);
        return code;
    }
    free(name);
    if (spec->value == NULL) {
        if (equals != NULL) {
            diag_error("'%.200s': --%s takes no value", word, spec->name);
            return EXIT_USAGE;
        }
        if (spec->kind == OPTION_HELP) {
            options_help(options->command);
            *help = true;
        } else {
            *(bool *)((char *)options + spec->offset) = true;
        }
        return EXIT_DONE;
    }
    const char *value = NULL;
    if (equals != NULL) {
        value = equals + 1;
    } else if (rest->count > 0 && strncmp(rest->items[0], "--", 2) != 0) {
        value = rest->items[0];
        rest->items++;
        rest->count--;
    }
    if (value == NULL || value[0] == '\0') {
        diag_error("--%s%s: a value is missing; write it as in --%s %s", spec->name,
                   value != NULL ? " ''" : "", spec->name, spec->example);
        return EXIT_USAGE;
    }
    const struct given given = {options, spec, value};
    return take(&given);
}

/// Gets how many files a command takes and how it is written; NULL when it takes none.
static const char *operands_of(enum command command, size_t *least, size_t *most) {
    *least = *most = 1;
    switch (command) {
        case COMMAND_PLOT:
            return "mhabench plot RESULT.json --out DIR";
        case COMMAND_REPORT:
            return "mhabench report RESULT.json --markdown";
        case COMMAND_ATTEND:
            return "mhabench attend \"I saw the movie\"";
        case COMMAND_AB:
            *least = *most = 2;
            return "mhabench ab HEAD~1 HEAD";
        case COMMAND_COMPARE:
            *least = *most = 2;
            return "mhabench compare BASE.json NEW.json";
        default:
            *least = *most = 0;
            return NULL;
    }
}

static int check_operands(const struct options *options) {
    size_t least = 0, most = 0;
    const char *own = option_command_word(options->command);
    const char *example = operands_of(options->command, &least, &most);
    const size_t count = options->operands.count;
    const bool text = options->command == COMMAND_ATTEND;
    if (count < least) {
        diag_error("%s: which %s? Write it as in %s", own,
                   text         ? "text"
                   : least == 1 ? "result"
                                : "two",
                   example);
        return EXIT_USAGE;
    }
    if (count > most && text) {
        diag_error("'%.200s': attend takes one text; put all of it in quotes, as in %s",
                   options->operands.items[most], example);
        return EXIT_USAGE;
    }
    if (count > most) {
        diag_error("'%.200s': %s takes %s; '%.200s' is %s already", options->operands.items[most],
                   own, most == 1 ? "one result file" : "two", options->operands.items[most - 1],
                   most == 1 ? "one" : "the second");
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int check_no_operands(const struct options *options) {
    if (options->operands.count > 0) {
        const char *word = options->operands.items[0];
        const char *own = option_command_word(options->command);
        if (find_option(options->command, "op") != NULL && is_known(word, option_op_word)) {
            diag_error("'%.200s': %s takes options only; did you mean --op %s?", word, own, word);
        } else {
            diag_error("'%.200s': %s takes options only; `mhabench %s --help` lists them", word,
                       own, own);
        }
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

/// The shape and the data of tensors are their own.
static int check_tensors(const struct options *options) {
    const struct {
        const char *name;
        bool given;
    } axes[] = {
        {"preset", options->presets.count > 0},    {"batch", options->batch.count > 0},
        {"heads", options->heads.count > 0},       {"kv-heads", options->kv_heads.count > 0},
        {"head-dim", options->head_dim.count > 0}, {"seq", options->seq.count > 0},
        {"seq-q", options->seq_q.count > 0},       {"seq-kv", options->seq_kv.count > 0}};
    if (options->tensors.count == 0) {
        const bool names = options->tensor_names.count > 0;
        if (names || options->tensor_layout != NULL) {
            diag_error("--tensor-%s: needs --tensors FILE", names ? "names" : "layout");
            return EXIT_USAGE;
        }
        return EXIT_DONE;
    }
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        if (axes[i].given) {
            diag_error(
                "--%s: the shape is that of the tensors; leave one of --%s and --tensors out",
                axes[i].name, axes[i].name);
            return EXIT_USAGE;
        }
    }
    if (options->data.count > 0) {
        diag_error(
            "--data '%s': the data is that of the tensors; leave one of --data and --tensors out",
            options->data.items[0]);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

/// Checks what options mean together.
static int check_together(const struct options *options) {
    const bool kv = options->seq_q.count == 0;
    if (options->seq.count > 0 && options->seq_q.count + options->seq_kv.count > 0) {
        diag_error(
            "--seq '%zu' --seq-%s '%zu': --seq sets queries and keys alike; give either "
            "--seq or --seq-q and --seq-kv",
            options->seq.items[0], kv ? "kv" : "q",
            kv ? options->seq_kv.items[0] : options->seq_q.items[0]);
        return EXIT_USAGE;
    }
    if (check_tensors(options) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    if (options->resume && options->out == NULL) {
        diag_error("--resume: needs --out FILE, the result file of the interrupted run");
        return EXIT_USAGE;
    }
    if (options->json + options->markdown + options->junit + options->gab > 1) {
        diag_error(
            "a report has one form: give one of --json, --markdown, --junit and "
            "--github-action-benchmark");
        return EXIT_USAGE;
    }
    if (options->command == COMMAND_HISTORY) {
        return EXIT_DONE;  // Its operands are words of its own, which it reads itself.
    }
    size_t least = 0, most = 0;
    return operands_of(options->command, &least, &most) != NULL ? check_operands(options)
                                                                : check_no_operands(options);
}

int options_command(const char *word, enum command *command) {
    for (size_t i = 0; option_command_word(i) != NULL; i++) {
        if (strcmp(word, option_command_word(i)) == 0) {
            *command = (enum command)i;
            return EXIT_DONE;
        }
    }
    char all[WORDS_BYTES];
    words_join(all, sizeof(all), option_command_word);
    const char *nearest = words_nearest(word, option_command_word);
    if (nearest != NULL) {
        diag_error("'%.200s': unknown command, did you mean '%s'? Known are %s", word, nearest,
                   all);
    } else {
        diag_error("'%.200s': unknown command; known are %s", word, all);
    }
    return EXIT_USAGE;
}

int options_parse(struct options *options, enum command command, int argc, char **argv,
                  bool *help) {
    *options = (struct options){
        .command = command, .seed = 1, .timeout_s = 60, .floor = 0.01, .launch_floor = 0.05};
    *help = false;
    struct words rest = {argc, argv};
    bool operands_only = false;
    while (rest.count > 0) {
        const char *word = rest.items[0];
        rest.items++;
        rest.count--;
        int code = EXIT_DONE;
        if (!operands_only && strcmp(word, "--") == 0) {
            operands_only = true;
        } else if (!operands_only && word[0] == '-' && word[1] != '\0') {
            code = parse_option(options, word, &rest, help);
        } else {
            string_list_add(&options->operands, word, strlen(word));
        }
        if (code != EXIT_DONE || *help) {
            return code;
        }
    }
    return check_together(options);
}

void options_free(struct options *options) {
    struct string_list *const words[] = {
        &options->ops,       &options->isas,     &options->kernels,        &options->dtypes,
        &options->presets,   &options->masks,    &options->caches,         &options->plugins,
        &options->positions, &options->gazes,    &options->tensors,        &options->tensor_names,
        &options->context,   &options->operands, &options->benchmark_args, &options->with,
        &options->data,
    };
    struct size_list *const sizes[] = {
        &options->batch, &options->heads, &options->kv_heads, &options->head_dim,
        &options->seq,   &options->seq_q, &options->seq_kv,   &options->threads,
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        string_list_free(words[i]);
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_list_free(sizes[i]);
    }
}
