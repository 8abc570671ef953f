#include "problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "numbers.h"

/// Text that grows inside a fixed buffer; what does not fit is cut off.
struct text {
    char *start;
    size_t size;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format,
                                                         ...) {
    va_list arguments;
    va_start(arguments, format);
    const int wanted =
        vsnprintf(text->start + text->length, text->size - text->length, format, arguments);
    va_end(arguments);
    if (wanted > 0) {
        const size_t room = text->size - text->length - 1;
        text->length += (size_t)wanted < room ? (size_t)wanted : room;
    }
}

void problem_mask_text(char text[32], const struct problem *problem) {
    switch (problem->mask) {
        case MHA_MASK_NONE:
            snprintf(text, 32, "none");
            return;
        case MHA_MASK_CAUSAL:
            snprintf(text, 32, "causal");
            return;
        case MHA_MASK_LENGTHS:
            snprintf(text, 32, "lengths");
            return;
        case MHA_MASK_WINDOW:
            snprintf(text, 32, "window:%zu", problem->window);
            return;
    }
    snprintf(text, 32, "?");
}

bool problem_mask_parse(struct problem *problem, const char *text) {
    static const char window[] = "window:";
    const size_t prefix = sizeof(window) - 1;
    uint64_t keys = 0;
    if (strcmp(text, "none") == 0) {
        problem->mask = MHA_MASK_NONE;
    } else if (strcmp(text, "causal") == 0) {
        problem->mask = MHA_MASK_CAUSAL;
    } else if (strcmp(text, "lengths") == 0) {
        problem->mask = MHA_MASK_LENGTHS;
    } else if (strncmp(text, window, prefix) == 0 &&
               number_parse(text + prefix, strlen(text + prefix), &keys) == NUMBER_FINE &&
               keys >= 1 && keys <= WINDOW_MAX) {
        problem->mask = MHA_MASK_WINDOW;
    } else {
        return false;
    }
    problem->window = (size_t)keys;
    return true;
}

static const char *const position_words[] = {"none", "sinusoid", "learned", "rope", "alibi", "t5"};

void problem_position_text(char text[32], const struct problem *problem) {
    const struct position *p = &problem->position;
    struct text out = {text, 32, 0};
    append(&out, "%s%s%s", position_words[p->kind], p->half ? ":half" : "",
           p->causal ? ":causal" : "");
    if (p->kind == POSITION_ROPE && (p->base < ROPE_BASE || p->base > ROPE_BASE)) {
        // Whole numbers only, as problem_position_parse() takes them: the same in every locale.
        append(&out, ":%.0f", p->base);
    }
}

/// Takes `word` off the front of *text when it is all of it or a colon follows.
static bool take_word(const char **text, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0 || ((*text)[length] != '\0' && (*text)[length] != ':')) {
        return false;
    }
    *text += length + ((*text)[length] == ':' && (*text)[length + 1] != '\0' ? 1 : 0);
    return true;
}

bool problem_position_parse(struct problem *problem, const char *text) {
    struct position p = {POSITION_NONE, false, 0, false};
    while (p.kind < POSITION_T5 && !take_word(&text, position_words[p.kind])) {
        p.kind++;
    }
    if (p.kind == POSITION_T5 && !take_word(&text, position_words[p.kind])) {
        return false;
    }
    if (p.kind == POSITION_ROPE) {
        uint64_t base = (uint64_t)ROPE_BASE;
        p.half = take_word(&text, "half");
        if (*text != '\0' && (number_parse(text, strlen(text), &base) != NUMBER_FINE || base < 2 ||
                              base > ROPE_BASE_MAX)) {
            return false;
        }
        text += strlen(text);
        p.base = (double)base;
    } else if (p.kind == POSITION_T5) {
        p.causal = take_word(&text, "causal");
    }
    if (*text != '\0') {
        return false;
    }
    problem->position = p;
    return true;
}

const char *problem_cache_text(enum cache_state cache) {
    return cache == CACHE_COLD ? "cold" : "hot";
}

bool problem_cache_parse(struct problem *problem, const char *text) {
    for (enum cache_state cache = CACHE_HOT; cache <= CACHE_COLD; cache++) {
        if (strcmp(text, problem_cache_text(cache)) == 0) {
            problem->cache = cache;
            return true;
        }
    }
    return false;
}

enum element problem_element(const struct problem *problem) {
    return element_find(problem->dtype);
}

void problem_case_name(char name[CASE_NAME_BYTES], const struct problem *problem, const char *isa,
                       const char *tag, int threads) {
    const struct mha_shape *shape = &problem->shape;
    struct text text = {name, CASE_NAME_BYTES, 0};
    name[0] = '\0';
    append(&text, "%s/%s/%s_%s/batch:%zu/heads:%zu", problem->op, problem->dtype, isa, tag,
           shape->batch, shape->heads);
    if (shape->kv_heads != shape->heads) {
        append(&text, "/kv_heads:%zu", shape->kv_heads);
    }
    append(&text, "/head_dim:%zu/seq_q:%zu/seq_kv:%zu", shape->head_dim, shape->seq_q,
           shape->seq_kv);
    if (problem->mask != MHA_MASK_NONE) {
        char mask[32];
        problem_mask_text(mask, problem);
        append(&text, "/mask:%s", mask);
    }
    if (problem->position.kind != POSITION_NONE) {
        char position[32];
        problem_position_text(position, problem);
        append(&text, "/position:%s", position);
    }
    if (problem->cache != CACHE_HOT) {
        append(&text, "/cache:%s", problem_cache_text(problem->cache));
    }
    if (problem->data != NULL) {
        append(&text, "/data:%s", problem->data);
    }
    append(&text, "/threads:%d", threads);
}

static void write_options(char *text, size_t size, const struct problem *problem, bool shaped) {
    const struct mha_shape *shape = &problem->shape;
    char mask[32];
    if (size == 0) {
        return;
    }
    text[0] = '\0';
    problem_mask_text(mask, problem);
    struct text options = {text, size, 0};
    append(&options, "--op %s --dtype %s", problem->op, problem->dtype);
    if (shaped) {
        append(&options,
               " --batch %zu --heads %zu --kv-heads %zu --head-dim %zu --seq-q %zu --seq-kv %zu",
               shape->batch, shape->heads, shape->kv_heads, shape->head_dim, shape->seq_q,
               shape->seq_kv);
    }
    append(&options, " --mask %s", mask);
    if (problem->position.kind != POSITION_NONE) {
        char position[32];
        problem_position_text(position, problem);
        append(&options, " --position %s", position);
    }
    if (problem->cache != CACHE_HOT) {
        append(&options, " --cache %s", problem_cache_text(problem->cache));
    }
    if (problem->data != NULL) {
        append(&options, " --data %s", problem->data);
    }
}

void problem_options(char *text, size_t size, const struct problem *problem) {
    write_options(text, size, problem, true);
}

void problem_options_unshaped(char *text, size_t size, const struct problem *problem) {
    write_options(text, size, problem, false);
}

int problem_compare_data(const struct problem *a, const struct problem *b) {
    return strcmp(a->data != NULL ? a->data : "", b->data != NULL ? b->data : "");
}

bool problem_equal(const struct problem *a, const struct problem *b) {
    return strcmp(a->op, b->op) == 0 && strcmp(a->dtype, b->dtype) == 0 &&
           a->shape.batch == b->shape.batch && a->shape.heads == b->shape.heads &&
           a->shape.kv_heads == b->shape.kv_heads && a->shape.seq_q == b->shape.seq_q &&
           a->shape.seq_kv == b->shape.seq_kv && a->shape.head_dim == b->shape.head_dim &&
           a->mask == b->mask && a->window == b->window && a->cache == b->cache &&
           a->position.kind == b->position.kind && a->position.half == b->position.half &&
           a->position.causal == b->position.causal && !(a->position.base < b->position.base) &&
           !(a->position.base > b->position.base) && problem_compare_data(a, b) == 0;
}

struct mha_mask problem_mask(const struct problem *problem, size_t batch) {
    const struct mha_shape *s = &problem->shape;
    const bool lengths = problem->mask == MHA_MASK_LENGTHS;
    const size_t length = lengths ? s->seq_kv * (2 * batch + 1) / (2 * s->batch) : s->seq_kv;
    return (struct mha_mask){problem->mask, s->seq_q, s->seq_kv, length, problem->window};
}
