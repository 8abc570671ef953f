/// From options to problems: the axes of the presets' blocks, replaced by those that the user gave,
/// multiplied out.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "diag.h"
#include "op.h"
#include "options.h"
#include "presets.h"

/// Most combinations that one selection may multiply out to; no sweep of that length ends.
enum { COMBINATIONS_MAX = 100000 };

/// One combination of axes, before the ops are applied.
struct builder {
    const struct options *options;
    struct selection *selection;
    const struct op_driver **drivers;  ///< Of the ops that the options let through.
    size_t driver_count;
    size_t capacity;       ///< Of selection->problems.
    size_t *slots;         ///< Hash table of indices + 1 into selection->problems; 0: free.
    size_t slot_count;     ///< A power of two.
    size_t combinations;   ///< Looked at so far, duplicates included.
    size_t indivisible;    ///< Left out: heads no multiple of kv_heads.
    size_t heads, shared;  ///< The last of them.
};

static size_t hash_add(size_t hash, size_t value) {
    // The mixing step of Knuth's multiplicative hashing: 2^64 / golden ratio.
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

/// A problem without what only labels it: two that differ in labels alone are the same work.
static struct problem work_of(const struct problem *problem) {
    struct problem work = *problem;
    if (op_find(problem->op)->head_dim_labels) {
        work.shape.head_dim = 1;
    }
    return work;
}

static size_t hash_of(const struct problem *problem) {
    const struct mha_shape *shape = &problem->shape;
    size_t hash = hash_add(0, (size_t)problem->mask);
    hash = hash_add(hash, problem->window);
    hash = hash_add(hash, (size_t)problem->cache);
    hash = hash_add(hash, (size_t)problem->position.kind);
    hash = hash_add(hash, (size_t)problem->position.base);
    hash = hash_add(hash, shape->batch);
    hash = hash_add(hash, shape->heads);
    hash = hash_add(hash, shape->kv_heads);
    hash = hash_add(hash, shape->seq_q);
    hash = hash_add(hash, shape->seq_kv);
    hash = hash_add(hash, shape->head_dim);
    hash = hash_add(hash, (size_t)problem_element(problem));
    for (const char *c = problem->op; *c != '\0'; c++) {
        hash = hash_add(hash, (unsigned char)*c);
    }
    for (const char *c = problem->data; c != NULL && *c != '\0'; c++) {
        hash = hash_add(hash, (unsigned char)*c);
    }
    return hash;
}

/// Gets the slot of `problem`, or the free one where it belongs.
static size_t *slot_of(const struct builder *builder, const struct problem *problem) {
    const struct problem work = work_of(problem);
    size_t at = hash_of(&work) & (builder->slot_count - 1);
    for (; builder->slots[at] != 0; at = (at + 1) & (builder->slot_count - 1)) {
        const struct problem held = work_of(&builder->selection->problems[builder->slots[at] - 1]);
        if (problem_equal(&held, &work)) {
            break;
        }
    }
    return &builder->slots[at];
}

static void add_problem(struct builder *builder, const struct problem *problem) {
    struct selection *selection = builder->selection;
    if (selection->count == builder->capacity) {
        builder->capacity = builder->capacity > 0 ? 2 * builder->capacity : 64;
        selection->problems =
            diag_alloc(realloc(selection->problems, builder->capacity * sizeof(struct problem)));
        free(builder->slots);
        builder->slot_count = 2 * builder->capacity;
        builder->slots = diag_alloc(calloc(builder->slot_count, sizeof(size_t)));
        for (size_t i = 0; i < selection->count; i++) {
            *slot_of(builder, &selection->problems[i]) = i + 1;
        }
    }
    size_t *slot = slot_of(builder, problem);
    if (*slot == 0) {
        selection->problems[selection->count] = *problem;
        *slot = ++selection->count;
    }
}

static bool listed(const struct string_list *list, const char *word) {
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], word) == 0) {
            return true;
        }
    }
    return false;
}

/// Splits a comma list of a preset.
static struct string_list words_of(const char *text) {
    struct string_list list = {0};
    for (;;) {
        const size_t length = strcspn(text, ",");
        string_list_add(&list, text, length);
        if (text[length] == '\0') {
            return list;
        }
        text += length + 1;
    }
}

/// Gets the drivers of the ops that the options name, or of every step of attention.
static void pick_drivers(struct builder *builder) {
    const struct string_list *ops = &builder->options->ops;
    builder->drivers = diag_alloc(calloc(op_count(), sizeof(struct op_driver *)));
    for (size_t i = 0; i < op_count(); i++) {
        const struct op_driver *driver = op_get(i);
        if (ops->count > 0 ? listed(ops, driver->name) : !driver->ceiling) {
            builder->drivers[builder->driver_count++] = driver;
        }
    }
}

/// Position encodings that the op takes; one without that axis has none.
static unsigned positions_of(const struct op_driver *driver) {
    return driver->positions ? driver->positions : 1u << POSITION_NONE;
}

/// Adds the problem in every position encoding that the op takes, of those that were asked for.
static void add_positions(struct builder *builder, const struct op_driver *driver,
                          const struct problem *problem, const struct string_list *positions) {
    for (size_t i = 0; i < positions->count; i++) {
        struct problem placed = *problem;
        if (problem_position_parse(&placed, positions->items[i]) &&
            (positions_of(driver) >> placed.position.kind & 1u)) {
            driver->normalise(&placed);
            add_problem(builder, &placed);
        }
        builder->combinations++;
    }
}

/// Tells whether a block of a preset has the op: any that the user names, else those it is made
/// for.
static bool block_has(const struct builder *builder, const struct preset_block *block,
                      const struct op_driver *driver) {
    if (block->ops == NULL || builder->options->ops.count > 0) {
        return true;
    }
    struct string_list ops = words_of(block->ops);
    const bool has = listed(&ops, driver->name);
    string_list_free(&ops);
    return has;
}

bool options_take(const struct options *options, const struct op_driver *driver,
                  enum element element) {
    const bool all = options->command == COMMAND_CHECK || options->command == COMMAND_LIST;
    const bool asked = options->dtypes.count > 0
                           ? listed(&options->dtypes, element_word((size_t)element))
                           : all || element == ELEMENT_F32;
    return asked && op_takes(driver, element);
}

bool options_data(const struct options *options, const struct op_driver *driver, size_t *at,
                  const char **data) {
    *data = NULL;
    if (options->data.count == 0) {
        return (*at)++ == 0;
    }
    while (*at < options->data.count) {
        const char *word = options->data.items[(*at)++];
        if (data_class_taken(driver, word)) {
            const bool first = strcmp(word, driver->classes[0]) == 0;
            // Of check no class is the default: that is all of them.
            *data = first && options->command != COMMAND_CHECK ? NULL : data_class_find(word)->name;
            return true;
        }
    }
    return false;
}

/// Multiplies one shape by ops, dtypes, masks, cache states, data classes and position encodings.
static void add_shape(struct builder *builder, const struct preset_block *block,
                      const struct mha_shape *shape, const struct string_list *masks) {
    static char *none_word[] = {"none"}, *hot_word[] = {"hot"};
    static const struct string_list no_mask = {1, none_word}, hot = {1, hot_word};
    const struct options *options = builder->options;
    const struct string_list *caches = options->caches.count > 0 ? &options->caches : &hot;
    for (size_t i = 0; i < builder->driver_count; i++) {
        const struct op_driver *driver = builder->drivers[i];
        if (!block_has(builder, block, driver)) {
            continue;
        }
        const struct string_list *op_masks = driver->has_mask ? masks : &no_mask;
        struct string_list own = words_of(driver->positions ? driver->default_positions : "none");
        const struct string_list *positions =
            options->positions.count > 0 && driver->positions ? &options->positions : &own;
        for (size_t d = 0; d < ELEMENT_COUNT; d++) {
            if (!options_take(options, driver, (enum element)d)) {
                continue;
            }
            for (size_t m = 0; m < op_masks->count; m++) {
                for (size_t c = 0; c < caches->count; c++) {
                    struct problem problem = {
                        .op = driver->name, .dtype = element_word(d), .shape = *shape};
                    if (problem_mask_parse(&problem, op_masks->items[m]) &&
                        problem_cache_parse(&problem, caches->items[c])) {
                        for (size_t n = 0; options_data(options, driver, &n, &problem.data);) {
                            add_positions(builder, driver, &problem, positions);
                        }
                    }
                }
            }
        }
        string_list_free(&own);
    }
}

/// Gets the user's list of an axis when there is one, else the block's. The presets' own lists are
/// right, which the tests assert.
static struct size_list axis_of(const struct size_list *given, const char *preset) {
    struct size_list axis = {0};
    for (size_t i = 0; i < given->count; i++) {
        size_list_add(&axis, given->items[i]);
    }
    if (given->count == 0 && preset != NULL) {
        char why[WHY_BYTES];
        if (!sizes_parse(&axis, preset, 0, SIZE_MAX, NULL, why)) {
            diag_error("preset: '%s': %s", preset, why);
            abort();
        }
    }
    return axis;
}

struct pair {
    size_t q, kv;
};

/// Gets the pairs of sequence lengths; NULL when there are too many.
static struct pair *pairs_of(const struct options *options, const struct preset_block *block,
                             size_t *count) {
    const bool alike = options->seq.count > 0 ||
                       (block->seq_kv == NULL && options->seq_q.count + options->seq_kv.count == 0);
    struct size_list q =
        axis_of(options->seq.count > 0 ? &options->seq : &options->seq_q, block->seq_q);
    struct size_list kv = axis_of(options->seq.count > 0 ? &options->seq : &options->seq_kv,
                                  block->seq_kv != NULL ? block->seq_kv : block->seq_q);
    const size_t total = alike ? q.count : q.count * kv.count;
    struct pair *pairs = NULL;
    *count = 0;
    if (total > 0 && total <= COMBINATIONS_MAX) {
        pairs = diag_alloc(calloc(total, sizeof(*pairs)));
    }
    for (size_t i = 0; pairs != NULL && i < q.count; i++) {
        for (size_t j = alike ? i : 0; j < (alike ? i + 1 : kv.count); j++) {
            pairs[(*count)++] = (struct pair){q.items[i], kv.items[j]};
        }
    }
    size_list_free(&q);
    size_list_free(&kv);
    return pairs;
}

/// Gets the numbers of kv heads to try beside `heads`.
///
/// When only heads are given, a preset that was asked for by name keeps its grouping where that is
/// possible (llama3 with 64 heads: 8 kv heads), and otherwise every head has its own keys.
static struct size_list kv_heads_of(const struct options *options, const struct preset_block *block,
                                    size_t heads) {
    struct size_list kv_heads = {0};
    const bool keep = options->heads.count == 0 || options->presets.count > 0;
    if (options->kv_heads.count > 0 || (block->kv_heads != NULL && keep)) {
        kv_heads = axis_of(&options->kv_heads, block->kv_heads);
    } else {
        size_list_add(&kv_heads, heads);
    }
    if (options->kv_heads.count == 0) {
        for (size_t i = 0; i < kv_heads.count; i++) {
            if (heads % kv_heads.items[i] != 0) {
                kv_heads.items[i] = heads;
            }
        }
    }
    return kv_heads;
}

/// Multiplies out one block. False: the selection is out of bounds.
static bool add_block(struct builder *builder, const struct preset_block *block,
                      const struct string_list *masks) {
    const struct options *options = builder->options;
    size_t pair_count = 0;
    struct pair *pairs = pairs_of(options, block, &pair_count);
    struct size_list batch = axis_of(&options->batch, block->batch);
    struct size_list heads = axis_of(&options->heads, block->heads);
    struct size_list head_dim = axis_of(&options->head_dim, block->head_dim);
    bool within = pairs != NULL;
    for (size_t h = 0; within && h < heads.count; h++) {
        struct size_list kv_heads = kv_heads_of(options, block, heads.items[h]);
        for (size_t g = 0; within && g < kv_heads.count; g++) {
            if (heads.items[h] % kv_heads.items[g] != 0) {
                builder->indivisible++;
                builder->heads = heads.items[h];
                builder->shared = kv_heads.items[g];
                // Looked at like any other: lists of thousands would be tried for half a minute.
                within = ++builder->combinations <= COMBINATIONS_MAX;
                continue;
            }
            const size_t shapes = batch.count * head_dim.count * pair_count;
            within = shapes <= COMBINATIONS_MAX;
            for (size_t i = 0; within && i < shapes; i++) {
                const struct pair *pair = &pairs[i % pair_count];
                const struct mha_shape shape = {
                    .batch = batch.items[i / pair_count / head_dim.count],
                    .heads = heads.items[h],
                    .kv_heads = kv_heads.items[g],
                    .seq_q = pair->q,
                    .seq_kv = pair->kv,
                    .head_dim = head_dim.items[i / pair_count % head_dim.count],
                };
                add_shape(builder, block, &shape, masks);
                within = builder->combinations <= COMBINATIONS_MAX;
            }
        }
        size_list_free(&kv_heads);
    }
    size_list_free(&batch);
    size_list_free(&heads);
    size_list_free(&head_dim);
    free(pairs);
    return within;
}

int options_threads(const struct options *options, size_t allowed, struct size_list *threads) {
    static size_t defaults[] = {1, THREADS_ALL};
    static const struct size_list one_and_all = {2, defaults};
    const struct size_list *given = options->threads.count > 0 ? &options->threads : &one_and_all;
    for (size_t i = 0; i < given->count; i++) {
        const size_t count = given->items[i] == THREADS_ALL ? allowed : given->items[i];
        if (count > allowed) {
            diag_error(
                "--threads '%zu': too many: this process may use %zu (its CPU affinity and "
                "cgroup quota); give numbers from 1 to %zu, or all",
                count, allowed, allowed);
            return EXIT_USAGE;
        }
        bool known = false;
        for (size_t j = 0; j < threads->count; j++) {
            known = known || threads->items[j] == count;
        }
        if (!known) {
            size_list_add(threads, count);
        }
    }
    return EXIT_DONE;
}

/// Refuses data classes that no op of the selection has; prints what these have.
static int check_data(const struct builder *builder) {
    const struct string_list *words = &builder->options->data;
    for (size_t w = 0; w < words->count; w++) {
        char all[1024] = "";
        bool taken = false;
        for (size_t i = 0; i < builder->driver_count; i++) {
            const struct op_driver *driver = builder->drivers[i];
            taken = taken || data_class_taken(driver, words->items[w]);
            for (size_t c = 0; driver->classes[c] != NULL; c++) {
                const char *before = c > 0 ? ", " : i > 0 ? "; " : "";
                const size_t used = strlen(all);
                snprintf(all + used, sizeof(all) - used, "%s%s%s%s", before,
                         c == 0 ? driver->name : "", c == 0 ? " has " : "", driver->classes[c]);
            }
        }
        if (!taken) {
            diag_error("--data '%s': no op of the selection has this class of data; %s",
                       words->items[w], all);
            return EXIT_USAGE;
        }
    }
    return EXIT_DONE;
}

static int select_problems(struct builder *builder) {
    static char *quick_word[] = {"quick"}, *edge_word[] = {"edge"};
    static const struct string_list quick = {1, quick_word}, edge = {1, edge_word};
    const struct options *options = builder->options;
    const struct string_list *names = &options->presets;
    if (names->count == 0) {
        names = options->command == COMMAND_CHECK ? &edge : &quick;
    }
    if (options->heads.count == 1 && options->kv_heads.count == 1 &&
        options->heads.items[0] % options->kv_heads.items[0] != 0) {
        diag_error(
            "--heads '%zu' --kv-heads '%zu': query heads share kv heads evenly; heads must "
            "be a multiple of kv-heads",
            options->heads.items[0], options->kv_heads.items[0]);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < builder->driver_count && options->ops.count > 0; i++) {
        const struct op_driver *driver = builder->drivers[i];
        bool takes = false;
        for (size_t e = 0; e < ELEMENT_COUNT; e++) {
            takes = takes || options_take(options, driver, (enum element)e);
        }
        if (!takes) {
            char known[32];
            op_dtypes(known, driver);
            diag_error("--op '%s' --dtype '%s': the dtypes of %s are: %s", driver->name,
                       options->dtypes.items[0], driver->name, known);
            return EXIT_USAGE;
        }
    }
    if (check_data(builder) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < names->count; i++) {
        const struct preset *preset = preset_find(names->items[i]);
        struct string_list own = words_of(preset->masks);
        bool within = true;
        for (size_t b = 0; within && b < preset->count; b++) {
            within = add_block(builder, &preset->blocks[b],
                               options->masks.count > 0 ? &options->masks : &own);
        }
        string_list_free(&own);
        if (!within) {
            diag_error(
                "the selection multiplies out to more than %d combinations; give fewer "
                "values or larger steps",
                COMBINATIONS_MAX);
            return EXIT_USAGE;
        }
    }
    if (builder->selection->count == 0) {
        if (builder->indivisible > 0) {
            diag_error(
                "--kv-heads '%zu': no number of heads in the selection is a multiple of it "
                "(the last one tried was %zu); heads must be a multiple of kv-heads",
                builder->shared, builder->heads);
        } else {
            diag_error("the selection names no problem");
        }
        return EXIT_USAGE;
    }
    if (builder->indivisible > 0) {
        diag_note(
            "left out %zu combinations of heads and kv-heads: heads must be a multiple of "
            "kv-heads",
            builder->indivisible);
    }
    return EXIT_DONE;
}

int options_select(const struct options *options, size_t threads_allowed,
                   struct selection *selection) {
    *selection = (struct selection){0};
    struct builder builder = {.options = options, .selection = selection};
    int code = options_threads(options, threads_allowed, &selection->threads);
    if (code == EXIT_DONE) {
        pick_drivers(&builder);
        code = select_problems(&builder);
    }
    free(builder.drivers);
    free(builder.slots);
    if (code != EXIT_DONE) {
        selection_free(selection);
    }
    return code;
}

void selection_free(struct selection *selection) {
    free(selection->problems);
    size_list_free(&selection->threads);
    *selection = (struct selection){0};
}
