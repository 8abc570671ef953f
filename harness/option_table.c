#include "option_table.h"

#include <stdio.h>

#include "attend.h"
#include "attend_heads.h"
#include "cpu.h"
#include "data.h"
#include "op.h"
#include "presets.h"

const char *option_command_word(size_t command) {
    static const char *const words[] = {
        [COMMAND_LIST] = "list",       [COMMAND_CHECK] = "check",   [COMMAND_RUN] = "run",
        [COMMAND_MACHINE] = "machine", [COMMAND_PLOT] = "plot",     [COMMAND_AB] = "ab",
        [COMMAND_COMPARE] = "compare", [COMMAND_REPORT] = "report", [COMMAND_HISTORY] = "history",
        [COMMAND_ATTEND] = "attend",   [COMMAND_STUDY] = "study",
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

/// The first is the default.
const char *option_layout_word(size_t index) {
    static const char *const words[] = {"bhsd", "bshd"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

static const char *tensor_word(size_t index) {
    static const char *const words[] = {"q", "k", "v"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

static const char *mask_word(size_t index) {
    static const char *const words[] = {"none", "causal", "lengths", "window:N"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

static const char *position_word(size_t index) {
    static const char *const words[] = {"none",  "sinusoid",  "learned",
                                        "rope",  "rope:half", "rope[:half]:BASE",
                                        "alibi", "t5",        "t5:causal"};
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

/// In the order of enum comparison_gate.
static const char *gate_word(size_t index) {
    static const char *const words[] = {"slower", "inconclusive", "none"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

/// The ops that attend runs, one after another.
static const char *attend_op_word(size_t index) {
    return index < ATTEND_STEPS ? attend_ops[index] : NULL;
}

static const char *gaze_mask_word(size_t index) {
    static const char *const words[] = {"none", "causal"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

static const char *format_word(size_t index) {
    static const char *const words[] = {"json", "csv"};
    return index < sizeof(words) / sizeof(words[0]) ? words[index] : NULL;
}

// Far beyond any model, and small enough that a typing slip does not pass for a shape.
#define WIDTH_MAX ((size_t)1 << 20)
#define SEQ_MAX ((size_t)WINDOW_MAX)
// sched_setaffinity() and libgomp know no more CPUs than this.
#define THREADS_MAX ((size_t)1 << 16)
// A report must have room for its head and its counts; GitHub takes 1 MiB for a step summary.
#define REPORT_CHARS_MIN ((size_t)2000)
#define REPORT_CHARS_MAX ((size_t)1 << 20)
// Results of one case that nobody has.
#define HISTORY_MAX ((size_t)1 << 30)
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
    {"dtype", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(dtypes), 0, 0, NULL, element_word,
     "TYPE,...", "f32", "element types of inputs: f32, bf16, f16; default: all for\nlist and check, else f32"},
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
    {"position", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(positions), 0, 0, NULL,
     position_word, "WHAT,...", "rope,rope:half:500000", "none, sinusoid, learned, rope[:half][:BASE], alibi or\n"
     "t5[:causal], for the ops that have such an axis"},
    {"cache", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(caches), 0, 0, NULL, cache_word,
     "STATE,...", "hot,cold", "hot: the same buffers each time; cold: copies beyond the\n"
     "last-level cache; default: hot"},
    {"data", OPTION_WORDS, GROUP_SELECTION, FOR_SELECTION, AT(data), 0, 0, NULL, data_class_word,
     "CLASS,...", "normal,jump", "classes of input data, for the ops that have them; default:\neach op's first, mostly normal; of check all of them"},
    {"threads", OPTION_SIZES, GROUP_SELECTION, FOR_SELECTION, AT(threads), 1, THREADS_MAX, "all",
     NULL, "LIST", "1,all", "numbers up to the CPUs that the process may use, and\n"
     "\"all\"; default: 1,all"},
    {"with", OPTION_PAIRS, GROUP_SELECTION, FOR(COMMAND_CHECK) | FOR(COMMAND_RUN), AT(with), 0, 0,
     NULL, option_op_word, "OP=KERNEL,...", "qk=qk_f32_avx2_libxsmm", "kernels that do these steps of mha, by full name"},

    {"tensors", OPTION_WORDS, GROUP_TENSORS, FOR(COMMAND_CHECK) | FOR(COMMAND_RUN), AT(tensors), 0,
     0, NULL, NULL, "FILE,...", "model.safetensors", "one .safetensors, or the .npy of q, k and v in this order; v\n"
     "may be missing; of f32, f16 or bf16"},
    {"tensor-names", OPTION_PAIRS, GROUP_TENSORS, FOR(COMMAND_CHECK) | FOR(COMMAND_RUN),
     AT(tensor_names), 0, 0, NULL, tensor_word, "q=NAME,k=NAME,v=NAME", "q=layer.0.q,k=layer.0.k,v=layer.0.v", "their names in a .safetensors; default: q, k and v"},
    {"tensor-layout", OPTION_WORD, GROUP_TENSORS, FOR(COMMAND_CHECK) | FOR(COMMAND_RUN),
     AT(tensor_layout), 0, 0, NULL, option_layout_word, "LAYOUT", "bshd", "bhsd: batch, heads, sequence, head_dim; bshd: batch,\n"
     "sequence, heads, head_dim; three axes have no batch, two no\nheads; default: bhsd"},

    {"exhaustive", OPTION_FLAG, GROUP_CHECK, FOR(COMMAND_CHECK), AT(exhaustive), 0, 0, NULL, NULL,
     NULL, NULL, "every float of [-104, 0] through softmax's exponentials, in\nplace of every 997th; a minute or two"},

    {"out", OPTION_TEXT, GROUP_RUN, FOR_RESULTS, AT(out), 0, 0, NULL, NULL,
     "FILE", "before.json", "where the result goes; default: a dated file"},
    {"resume", OPTION_FLAG, GROUP_RUN, FOR_RESULTS, AT(resume), 0, 0, NULL, NULL,
     NULL, NULL, "goes on with the interrupted run to --out FILE"},
    {"budget", OPTION_SECONDS, GROUP_RUN, FOR(COMMAND_RUN), AT(budget_s), 0, 0, NULL, NULL,
     "SECONDS", "600", "time for the whole run, shared out so that the least\ncertain rows get most"},
    {"launches", OPTION_SIZE, GROUP_RUN, FOR_RESULTS, AT(launches), 1, LAUNCHES_MAX, NULL,
     NULL, "N", "5", "fresh processes that each measure every case"},

    {"benchmark_min_time", OPTION_SECONDS, GROUP_BENCHMARK, FOR(COMMAND_RUN), AT(min_time_s), 0, 0,
     NULL, NULL, "SECONDS", "0.05", "length of one sample; default: 0.01, or 0.002 where\nquick has too many cases for its time"},
    {"benchmark_min_warmup_time", OPTION_PASS, GROUP_BENCHMARK, FOR(COMMAND_RUN),
     AT(benchmark_args), 0, 0, NULL, NULL, "SECONDS", "0.1", "warm-up before a sample"},
    {"benchmark_context", OPTION_PAIRS, GROUP_BENCHMARK, FOR(COMMAND_RUN), AT(context), 0, 0, NULL,
     NULL, "KEY=VALUE,...", "host=ci1", "further facts for the result's context"},

    {"out", OPTION_TEXT, GROUP_PLOT, FOR(COMMAND_PLOT), AT(out), 0, 0, NULL, NULL,
     "DIR", "images", "folder of the images; default: the current one"},

    {"floor", OPTION_PERCENT, GROUP_JUDGE, FOR_JUDGES, AT(floor), 0, 0, NULL, NULL,
     "PERCENT", "2", "changes up to this are not worth a verdict; default: 1"},
    {"launch-floor", OPTION_PERCENT, GROUP_JUDGE, FOR(COMMAND_COMPARE), AT(launch_floor), 0, 0,
     NULL, NULL, "PERCENT", "3", "spread between launches that is taken for granted where a side\n"
     "has fewer than six of them; default: 5"},
    {"budget", OPTION_SECONDS, GROUP_JUDGE, FOR(COMMAND_AB), AT(budget_s), 0, 0, NULL, NULL,
     "SECONDS", "60", "time for all launches; rows whose verdict is settled leave\ntheirs to the others; default: 120"},
    {"launches", OPTION_SIZE, GROUP_JUDGE, FOR(COMMAND_AB), AT(launches), 1, LAUNCHES_MAX, NULL,
     NULL, "N", "20", "most launches, fresh processes that each visit every open row;\ndefault: what the budget allows"},
    {"gate", OPTION_GATE, GROUP_JUDGE, FOR_JUDGES, AT(gate), 0, 0, NULL, gate_word,
     "WHAT", "inconclusive", "what ends with a code other than 0: slower (1), inconclusive\n"
     "(as well, 3) or none; default: slower"},
    {"relative", OPTION_FLAG, GROUP_JUDGE, FOR(COMMAND_COMPARE), AT(relative), 0, 0, NULL, NULL,
     NULL, NULL, "compares every row with the scalar kernel of its own run, so\n"
     "that results of different machines can be compared"},

    {"markdown", OPTION_FLAG, GROUP_REPORT, FOR_REPORTS, AT(markdown), 0, 0, NULL, NULL,
     NULL, NULL, "a table for a pull request or a step summary, worst first"},
    {"max-chars", OPTION_SIZE, GROUP_REPORT, FOR_REPORTS, AT(max_chars), REPORT_CHARS_MIN,
     REPORT_CHARS_MAX, NULL, NULL, "N", "65536", "cuts the markdown to so many characters, the least\n"
     "important rows first; default: 1048576, a step summary"},
    {"junit", OPTION_FLAG, GROUP_REPORT, FOR_REPORTS, AT(junit), 0, 0, NULL, NULL,
     NULL, NULL, "JUnit XML: one test case per kernel and shape"},
    {"github-action-benchmark", OPTION_FLAG, GROUP_REPORT, FOR_REPORTS, AT(gab), 0, 0, NULL, NULL,
     NULL, NULL, "JSON for that action's customSmallerIsBetter"},
    {"out", OPTION_TEXT, GROUP_REPORT, FOR_REPORTS, AT(out), 0, 0, NULL, NULL,
     "FILE", "report.md", "where the report goes; default: stdout"},

    {"db", OPTION_TEXT, GROUP_HISTORY, FOR(COMMAND_HISTORY), AT(db), 0, 0, NULL, NULL,
     "FILE", "history.db", "the history; `add` makes it where there is none"},
    {"case", OPTION_TEXT, GROUP_HISTORY, FOR(COMMAND_HISTORY), AT(case_glob), 0, 0, NULL, NULL,
     "GLOB", "'qk/f32/avx2_*'", "cases by name, with * ? [...]; default: all"},
    {"last", OPTION_SIZE, GROUP_HISTORY, FOR(COMMAND_HISTORY), AT(last), 1, HISTORY_MAX, NULL, NULL,
     "N", "50", "show: the newest results of each case; default: 20"},
    {"commit", OPTION_TEXT, GROUP_HISTORY, FOR(COMMAND_HISTORY), AT(commit), 0, 0, NULL, NULL,
     "COMMIT", "2f60c47", "ack: the commit that `check` names, or its first digits"},
    {"format", OPTION_WORD, GROUP_HISTORY, FOR(COMMAND_HISTORY), AT(format), 0, 0, NULL,
     format_word, "FORMAT", "csv", "export: json or csv; default: json"},

    {"head", OPTION_WORDS, GROUP_ATTEND, FOR(COMMAND_ATTEND), AT(gazes), 0, 0, NULL,
     attend_head_word, "HEAD,...", "previous-token", "heads, listed below; default: all that take the text"},
    {"mask", OPTION_WORD, GROUP_ATTEND, FOR(COMMAND_ATTEND), AT(gaze_mask), 0, 0, NULL,
     gaze_mask_word, "MASK", "causal", "none or causal; default: none"},
    {"isa", OPTION_WORDS, GROUP_ATTEND, FOR(COMMAND_ATTEND), AT(isas), 0, 0, NULL, option_isa_word,
     "ISA,...", "avx2", "instruction sets of the kernels; default: all"},
    {"with", OPTION_PAIRS, GROUP_ATTEND, FOR(COMMAND_ATTEND), AT(with), 0, 0, NULL, attend_op_word,
     "OP=KERNEL,...", "qk=qk_f32_scalar_dot", "kernels that do these steps, by full name; steps are\n"
     "qkv_proj, qk and softmax; default: the best of --isa"},

    {"budget", OPTION_SECONDS, GROUP_STUDY, FOR(COMMAND_STUDY), AT(budget_s), 0, 0, NULL, NULL,
     "SECONDS", "600", "time for measuring; default: 240"},
    {"isa", OPTION_WORDS, GROUP_STUDY, FOR(COMMAND_STUDY), AT(isas), 0, 0, NULL, option_isa_word,
     "ISA,...", "avx2", "instruction sets of the kernels; default: all"},
    {"threads", OPTION_SIZES, GROUP_STUDY, FOR(COMMAND_STUDY), AT(threads), 1, THREADS_MAX, "all",
     NULL, "LIST", "8", "the largest is what stands against one thread; default: all"},
    {"with", OPTION_PAIRS, GROUP_STUDY, FOR(COMMAND_STUDY), AT(with), 0, 0, NULL, option_op_word,
     "OP=KERNEL,...", "qk=qk_f32_scalar_dot", "kernels that do these steps, by full name; default: the best\nof --isa"},

    {"seed", OPTION_SEED, GROUP_COMMON, FOR_KERNELS | FOR(COMMAND_STUDY), AT(seed), 0, 0, NULL, NULL,
     "N", "7", "start of all random numbers, 64 bits; default: 1"},
    {"plugin", OPTION_FILES, GROUP_COMMON, (FOR_KERNELS & ~FOR(COMMAND_AB)) | FOR_CHOSEN, AT(plugins), 0, 0, NULL, NULL,
     "FILE.so", "./mine.so", "adds a library of kernels; may be repeated"},
    {"max-isa", OPTION_WORD, GROUP_COMMON, FOR_KERNELS | FOR_CHOSEN, AT(max_isa), 0, 0, NULL, option_isa_word,
     "ISA", "avx2", "uses no instruction set beyond this one"},
    {"timeout", OPTION_SECONDS, GROUP_COMMON, FOR_KERNELS | FOR_CHOSEN, AT(timeout_s), 0, 0, NULL, NULL,
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
