#include "option_table.h"

#include <stdio.h>

#include "cpu.h"
#include "op.h"
#include "presets.h"

const char *option_command_word(size_t command) {
    static const char *const words[] = {
        [COMMAND_LIST] = "list",       [COMMAND_CHECK] = "check", [COMMAND_RUN] = "run",
        [COMMAND_MACHINE] = "machine", [COMMAND_PLOT] = "plot",
    };
    return command < sizeof(words) / sizeof(words[0]) ? words[command] : NULL;
}

const char *option_op_word(size_t index) {
    return index < op_count() ? op_get(index)->name : NULL;
}

const char *option_isa_word(size_t index) {
    return index < mha_isa_count() ? mha_isa_status(index, NULL).isa : NULL;
}

const char *option_preset_word(size_t index) {
    const struct preset *preset = preset_get(index);
    return preset != NULL ? preset->name : NULL;
}

static const char *mask_word(size_t index) {
    static const char *const words[] = {"none", "causal", "lengths", "window:N"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

static const char *cache_word(size_t index) {
    return index <= CACHE_COLD ? problem_cache_text((enum cache_state)index) : NULL;
}

/// In the order of enum color_mode.
static const char *color_word(size_t index) {
    static const char *const words[] = {"auto", "always", "never"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

// Far beyond any model, and small enough that a typing slip does not pass for a shape.
#define WIDTH_MAX ((size_t)1 << 20)
#define SEQ_MAX ((size_t)WINDOW_MAX)
// sched_setaffinity() and libgomp know no more CPUs than this.
#define THREADS_MAX ((size_t)1 << 16)
// Far more launches than any interval needs.
#define LAUNCHES_MAX ((size_t)1000)

#define AT(member) offsetof(struct options, member)

// clang-format off

static const struct option_spec specs[] = {
    {"op", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(ops), 0, 0, NULL, option_op_word,
     "OP,...", "qk,softmax", "steps of attention; default: all but the ceilings"},
    {"isa", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(isas), 0, 0, NULL, option_isa_word,
     "ISA,...", "avx2", "instruction sets; default: all"},
    {"kernel", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(kernels), 0, 0, NULL, NULL,
     "GLOB,...", "'qk_*_libxsmm'", "kernels by full name, with * ? [...]; default: all"},
    {"dtype", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(dtypes), 0, 0, NULL, problem_dtype,
     "TYPE,...", "f32", "element types; default: all"},
    {"preset", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(presets), 0, 0, NULL,
     option_preset_word, "NAME,...", "gpt3", "named shapes, listed below; an axis given explicitly\n"
     "replaces the preset's"},
    {"batch", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(batch), 1, WIDTH_MAX, NULL, NULL,
     "LIST", "1,8", "independent sequences"},
    {"heads", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(heads), 1, WIDTH_MAX, NULL, NULL,
     "LIST", "12", "query heads; kv heads follow unless given"},
    {"kv-heads", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(kv_heads), 1, WIDTH_MAX, NULL,
     NULL, "LIST", "4", "key/value heads; heads must be a multiple"},
    {"head-dim", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(head_dim), 1, WIDTH_MAX, NULL,
     NULL, "LIST", "64,128", "width of one head"},
    {"seq", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(seq), 1, SEQ_MAX, NULL, NULL,
     "LIST", "128", "queries and keys alike; excludes the next two"},
    {"seq-q", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(seq_q), 1, SEQ_MAX, NULL, NULL,
     "LIST", "1", "queries; 1 is decoding"},
    {"seq-kv", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(seq_kv), 0, SEQ_MAX, NULL, NULL,
     "LIST", "4096", "keys"},
    {"mask", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(masks), 0, 0, NULL, mask_word,
     "MASK,...", "causal,window:128", "none, causal, lengths or window:N, for the ops that have\n"
     "a mask"},
    {"cache", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(caches), 0, 0, NULL, cache_word,
     "STATE,...", "hot,cold", "hot: the same buffers each time; cold: copies beyond the\n"
     "last-level cache; default: hot"},
    {"threads", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(threads), 1, THREADS_MAX, "all",
     NULL, "LIST", "1,all", "numbers up to the CPUs that the process may use, and\n"
     "\"all\"; default: 1,all"},

    {"out", OPTION_TEXT, GROUP_RUN, FOR(COMMAND_RUN), AT(out), 0, 0, NULL, NULL,
     "FILE", "before.json", "where the result goes; default: a dated file"},
    {"resume", OPTION_FLAG, GROUP_RUN, FOR(COMMAND_RUN), AT(resume), 0, 0, NULL, NULL,
     NULL, NULL, "goes on with the interrupted run to --out FILE"},
    {"budget", OPTION_SECONDS, GROUP_RUN, FOR(COMMAND_RUN), AT(budget_s), 0, 0, NULL, NULL,
     "SECONDS", "600", "time for the whole run, shared out so that the least\ncertain rows get most"},
    {"launches", OPTION_SIZE, GROUP_RUN, FOR(COMMAND_RUN), AT(launches), 1, LAUNCHES_MAX, NULL,
     NULL, "N", "5", "fresh processes that each measure every case"},

    {"benchmark_min_time", OPTION_SECONDS, GROUP_BENCHMARK, FOR(COMMAND_RUN), AT(min_time_s), 0, 0,
     NULL, NULL, "SECONDS", "0.05", "length of one sample"},
    {"benchmark_min_warmup_time", OPTION_PASS, GROUP_BENCHMARK, FOR(COMMAND_RUN),
     AT(benchmark_args), 0, 0, NULL, NULL, "SECONDS", "0.1", "warm-up before a sample"},
    {"benchmark_context", OPTION_PAIRS, GROUP_BENCHMARK, FOR(COMMAND_RUN), AT(context), 0, 0, NULL,
     NULL, "KEY=VALUE,...", "host=ci1", "further facts for the result's context"},

    {"out", OPTION_TEXT, GROUP_PLOT, FOR(COMMAND_PLOT), AT(out), 0, 0, NULL, NULL,
     "DIR", "images", "folder of the images; default: the current one"},

    {"seed", OPTION_SEED, GROUP_COMMON, FOR_KERNELS, AT(seed), 0, 0, NULL, NULL,
     "N", "7", "start of all random numbers, 64 bits; default: 1"},
    {"plugin", OPTION_FILES, GROUP_COMMON, FOR_KERNELS, AT(plugins), 0, 0, NULL, NULL,
     "FILE.so", "./mine.so", "adds a library of kernels; may be repeated"},
    {"max-isa", OPTION_WORD, GROUP_COMMON, FOR_KERNELS, AT(max_isa), 0, 0, NULL, option_isa_word,
     "ISA", "avx2", "uses no instruction set beyond this one"},
    {"timeout", OPTION_SECONDS, GROUP_COMMON, FOR_KERNELS, AT(timeout_s), 0, 0, NULL, NULL,
     "SECONDS", "60", "a kernel that shows no progress for so long is ended;\ndefault: 60"},
    {"json", OPTION_FLAG, GROUP_COMMON, FOR_ALL, AT(json), 0, 0, NULL, NULL,
     NULL, NULL, "prints JSON on stdout"},
    {"color", OPTION_COLOR, GROUP_COMMON, FOR_ALL, AT(color), 0, 0, NULL, color_word,
     "WHEN", "never", "auto, always or never; auto honours NO_COLOR"},
    {"verbose", OPTION_FLAG, GROUP_COMMON, FOR_ALL, AT(verbose), 0, 0, NULL, NULL,
     NULL, NULL, "says more on stderr"},
    {"help", OPTION_HELP, GROUP_COMMON, FOR_ALL, 0, 0, 0, NULL, NULL,
     NULL, NULL, "prints this text"},
};

// clang-format on

const struct option_spec *option_get(size_t index) {
    return index < sizeof(specs) / sizeof(specs[0]) ? &specs[index] : NULL;
}
