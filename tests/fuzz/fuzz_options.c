/// The command line: any words must be taken or refused, quickly, with nothing left behind; what is
/// taken must name problems that the harness can lay out.
#include <string.h>

#include "diag.h"
#include "fuzz.h"
#include "op.h"
#include "options.h"

/// Threads that --threads all stands for, whatever this machine has.
enum { ALLOWED = 8 };

/// Longest command line, in words.
enum { WORDS_MAX = 64 };

/// As select.c has it: a selection that multiplies out to more is refused.
enum { COMBINATIONS_MAX = 100000 };

static void check_selection(const struct options *options, const struct selection *selection) {
    FUZZ_REQUIRE(selection->count >= 1 && selection->count <= COMBINATIONS_MAX, "%zu problems",
                 selection->count);
    FUZZ_REQUIRE(selection->threads.count >= 1, "no thread count");
    for (size_t i = 0; i < selection->threads.count; i++) {
        const size_t threads = selection->threads.items[i];
        FUZZ_REQUIRE(threads >= 1 && threads <= ALLOWED, "%zu threads", threads);
    }
    for (size_t i = 0; i < selection->count; i++) {
        const struct problem *p = &selection->problems[i];
        const struct op_driver *driver = op_find(p->op);
        FUZZ_REQUIRE(driver != NULL, "no op %s", p->op);
        const struct mha_shape *s = &p->shape;
        FUZZ_REQUIRE(s->batch >= 1 && s->heads >= 1 && s->kv_heads >= 1 && s->head_dim >= 1,
                     "an empty shape");
        FUZZ_REQUIRE(s->heads % s->kv_heads == 0, "%zu heads, %zu kv heads", s->heads, s->kv_heads);
        FUZZ_REQUIRE((p->mask == MHA_MASK_WINDOW) == (p->window > 0), "window %zu", p->window);
        // A hundred thousand take long to look at one by one.
        if (i < 1000) {
            char name[CASE_NAME_BYTES], text[CASE_NAME_BYTES];
            problem_case_name(name, p, "avx512bf16", "some_tag", ALLOWED);
            problem_options(text, sizeof(text), p);
            FUZZ_REQUIRE(strlen(name) + 1 < sizeof(name) && strlen(text) + 1 < sizeof(text),
                         "a cut name: %s, %s", name, text);
        }
    }
    (void)options;
}

/// The first byte is the command; the words behind it end with '\n' or a zero each.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) {
        return 0;
    }
    const enum command command = (enum command)(data[0] % (COMMAND_PLOT + 1));
    char *text = diag_alloc(malloc(size));
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    char *argv[WORDS_MAX + 1];
    int argc = 0;
    for (size_t i = 0; i + 1 < size && argc < WORDS_MAX; i += strlen(text + i) + 1) {
        char *end = strchr(text + i, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        argv[argc++] = text + i;
    }
    argv[argc] = NULL;
    struct options options;
    struct selection selection = {0};
    bool help = false;
    const int parsed = options_parse(&options, command, argc, argv, &help);
    FUZZ_REQUIRE(parsed == EXIT_DONE || parsed == EXIT_USAGE, "exit code %d", parsed);
    if (parsed == EXIT_DONE && !help && command <= COMMAND_RUN) {
        const int selected = options_select(&options, ALLOWED, &selection);
        FUZZ_REQUIRE(selected == EXIT_DONE || selected == EXIT_USAGE, "exit code %d", selected);
        if (selected == EXIT_DONE) {
            check_selection(&options, &selection);
        }
    }
    selection_free(&selection);
    options_free(&options);
    free(text);
    return 0;
}
