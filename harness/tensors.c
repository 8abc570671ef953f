#include "tensors.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "diag.h"
#include "option_table.h"

/// What an op's input is made of.
enum source { SOURCE_Q, SOURCE_K, SOURCE_V, SOURCE_SCORES, SOURCE_WEIGHTS };

static const struct {
    const char *op, *tensor;
    enum source source;
} inputs[] = {
    {"qk", "q", SOURCE_Q},        {"qk", "k", SOURCE_K},   {"softmax", "x", SOURCE_SCORES},
    {"bias", "x", SOURCE_SCORES}, {"pv", "v", SOURCE_V},   {"pv", "p", SOURCE_WEIGHTS},
    {"sdpa", "q", SOURCE_Q},      {"sdpa", "k", SOURCE_K}, {"sdpa", "v", SOURCE_V},
};
enum { INPUTS = sizeof(inputs) / sizeof(inputs[0]) };

static const char *const letters[TENSORS_COUNT] = {"q", "k", "v"};

__attribute__((format(printf, 2, 3))) static bool fail(char error[TENSOR_ERROR_BYTES],
                                                       const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, TENSOR_ERROR_BYTES, format, arguments);
    va_end(arguments);
    return false;
}

// --- reading
// ------------------------------------------------------------------------------------------

/// Gets the name that the source gives a tensor; NULL when it gives none.
static const char *name_of(const struct tensor_source *source, const char *letter) {
    for (size_t i = 0; i < source->names->count; i++) {
        const char *pair = source->names->items[i];
        if (pair[0] == letter[0] && pair[1] == '=') {
            return pair + 2;
        }
    }
    return NULL;
}

/// Names the axes of what a file holds: those that it lacks in front are 1.
static void place(struct tensor_values *t, bool bshd) {
    size_t extents[TENSOR_RANK_MAX] = {1, 1, 1, 1};
    const size_t missing = TENSOR_RANK_MAX - t->file.rank;
    for (size_t i = 0; i < t->file.rank; i++) {
        extents[missing + i] = t->file.extents[i];
    }
    if (bshd && t->file.rank == 2) {
        // A single head: [seq, head_dim] either way.
        extents[1] = extents[2];
        extents[2] = 1;
    }
    t->given = true;
    t->batch = extents[0];
    t->heads = extents[bshd ? 2 : 1];
    t->seq = extents[bshd ? 1 : 2];
    t->head_dim = extents[3];
    t->head_stride = bshd ? t->head_dim : t->seq * t->head_dim;
    t->seq_stride = bshd ? t->heads * t->head_dim : t->head_dim;
    t->batch_stride = t->heads * t->seq * t->head_dim;
}

static bool read_npy(struct tensor_set *set, const struct tensor_source *source,
                     char error[TENSOR_ERROR_BYTES]) {
    for (size_t i = 0; i < source->files->count; i++) {
        struct tensor_file file;
        if (!tensor_file_open(&file, source->files->items[i], error)) {
            return false;
        }
        const bool good = file.npy
                              ? tensor_file_read(&file, NULL, &set->tensors[i].file, error)
                              : fail(error, "%.300s: no .npy file; of several files each is one",
                                     source->files->items[i]);
        tensor_file_close(&file);
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool read_safetensors(struct tensor_set *set, const struct tensor_source *source,
                             const struct tensor_file *file, char error[TENSOR_ERROR_BYTES]) {
    for (size_t i = 0; i < TENSORS_COUNT; i++) {
        const char *given = name_of(source, letters[i]);
        const char *name = given != NULL ? given : letters[i];
        // Without values there is less to check, and no mistake. With names, v is what was named.
        const bool absent = i == TENSORS_V && given == NULL &&
                            (source->names->count > 0 || !tensor_file_has(file, name));
        if (!absent && !tensor_file_read(file, name, &set->tensors[i].file, error)) {
            return false;
        }
    }
    return true;
}

static bool read_files(struct tensor_set *set, const struct tensor_source *source,
                       char error[TENSOR_ERROR_BYTES]) {
    const size_t files = source->files->count;
    struct tensor_file first;
    if (files == 0 || files > TENSORS_COUNT) {
        return fail(error, "%zu files; give one .safetensors, or the .npy of q, k and v", files);
    }
    if (!tensor_file_open(&first, source->files->items[0], error)) {
        return false;
    }
    bool good = true;
    if (!first.npy && files == 1) {
        good = read_safetensors(set, source, &first, error);
    } else if (first.npy && files == 1) {
        good = fail(error, "%.300s: an .npy file holds one tensor; give those of q, k and v",
                    source->files->items[0]);
    } else if (source->names->count > 0) {
        good = fail(error, "--tensor-names: .npy files have no names; their order is q, k, v");
    } else {
        good = read_npy(set, source, error);
    }
    tensor_file_close(&first);
    return good;
}

static bool check_shapes(struct tensor_set *set, char error[TENSOR_ERROR_BYTES]) {
    const struct tensor_values *q = &set->tensors[TENSORS_Q], *k = &set->tensors[TENSORS_K];
    const struct tensor_values *v = &set->tensors[TENSORS_V];
    const struct {
        const char *axis, *a, *b;
        size_t of_a, of_b;
    } pairs[] = {
        {"batch", "q", "k", q->batch, k->batch}, {"head_dim", "q", "k", q->head_dim, k->head_dim},
        {"batch", "k", "v", k->batch, v->batch}, {"heads", "k", "v", k->heads, v->heads},
        {"seq", "k", "v", k->seq, v->seq},       {"head_dim", "k", "v", k->head_dim, v->head_dim}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (pairs[i].of_a != pairs[i].of_b && (pairs[i].b[0] != 'v' || v->given)) {
            return fail(error,
                        "%s of %s is %zu, of %s %zu: they must be the same (is the layout right?)",
                        pairs[i].axis, pairs[i].a, pairs[i].of_a, pairs[i].b, pairs[i].of_b);
        }
    }
    if (q->heads % k->heads != 0) {
        return fail(error,
                    "q has %zu heads, k %zu: query heads share kv heads evenly (is the layout "
                    "right?)",
                    q->heads, k->heads);
    }
    set->shape = (struct mha_shape){q->batch, q->heads, k->heads, q->seq, k->seq, q->head_dim};
    return true;
}

static const float *row_of(const struct tensor_values *t, size_t batch, size_t head, size_t row) {
    return t->file.values + batch * t->batch_stride + head * t->head_stride + row * t->seq_stride;
}

static void hash_set(struct tensor_set *set) {
    uint64_t hash = 0;
    for (size_t i = 0; i < TENSORS_COUNT; i++) {
        const struct tensor_values *t = &set->tensors[i];
        const size_t axes[] = {t->batch, t->heads, t->seq, t->head_dim};
        for (size_t a = 0; a < TENSOR_RANK_MAX; a++) {
            hash = data_mix(hash, axes[a]);
        }
        for (size_t row = 0; t->given && row < t->batch * t->heads * t->seq; row++) {
            const float *values =
                row_of(t, row / t->seq / t->heads, row / t->seq % t->heads, row % t->seq);
            for (size_t c = 0; c < t->head_dim; c++) {
                uint32_t bits;
                memcpy(&bits, &values[c], sizeof(bits));
                hash = data_mix(hash, bits);
            }
        }
    }
    snprintf(set->hash, sizeof(set->hash), "%016llx", (unsigned long long)hash);
}

bool tensors_load(struct tensor_set *set, const struct tensor_source *source,
                  char error[TENSOR_ERROR_BYTES]) {
    memset(set, 0, sizeof(*set));
    const bool bshd = source->layout != NULL && strcmp(source->layout, "bshd") == 0;
    bool good = read_files(set, source, error);
    for (size_t i = 0; i < TENSORS_COUNT; i++) {
        if (set->tensors[i].file.values != NULL) {
            place(&set->tensors[i], bshd);
        }
    }
    good = good && check_shapes(set, error);
    if (good) {
        hash_set(set);
    } else {
        tensors_drop(set);
    }
    return good;
}

void tensors_drop(struct tensor_set *set) {
    for (size_t i = 0; i < TENSORS_COUNT; i++) {
        file_tensor_free(&set->tensors[i].file);
    }
}

// --- options
// ------------------------------------------------------------------------------------------

static bool has_source(const struct tensor_set *set, enum source source) {
    switch (source) {
        case SOURCE_V:
            return set->tensors[TENSORS_V].given;
        case SOURCE_Q:
        case SOURCE_K:
        case SOURCE_SCORES:
        case SOURCE_WEIGHTS:
            break;
    }
    return true;  // there is no set without q and k
}

/// Tells whether the set has what the op takes.
static bool takes(const struct tensor_set *set, const char *op) {
    bool any = false, all = true;
    for (size_t i = 0; i < INPUTS; i++) {
        if (strcmp(inputs[i].op, op) == 0) {
            any = true;
            all = all && has_source(set, inputs[i].source);
        }
    }
    return any && all;
}

/// Takes those of the wanted ops that the set has inputs for.
static int pick_ops(struct tensor_options *prepared, const struct string_list *wanted) {
    char left_out[200] = "";
    for (size_t i = 0; i < op_count(); i++) {
        const struct op_driver *driver = op_get(i);
        bool asked = wanted->count == 0 && !driver->ceiling;
        for (size_t w = 0; w < wanted->count; w++) {
            asked = asked || strcmp(wanted->items[w], driver->name) == 0;
        }
        if (asked && takes(&prepared->set, driver->name)) {
            string_list_add(&prepared->own.ops, driver->name, strlen(driver->name));
        } else if (asked) {
            const size_t used = strlen(left_out);
            snprintf(left_out + used, sizeof(left_out) - used, "%s%s", used > 0 ? ", " : "",
                     driver->name);
        }
    }
    const char *without_v = prepared->set.tensors[TENSORS_V].given ? "" : ", and there is no v";
    if (prepared->own.ops.count == 0) {
        diag_error("--tensors: %s: no op that takes queries, keys or values%s", left_out,
                   without_v);
        return EXIT_USAGE;
    }
    if (left_out[0] != '\0') {
        diag_note("left out: %s: they take no queries, keys or values%s", left_out, without_v);
    }
    return EXIT_DONE;
}

static struct tensor_source source_of(const struct options *options) {
    return (struct tensor_source){&options->tensors, &options->tensor_names,
                                  options->tensor_layout};
}

int tensors_options(const struct options *options, struct tensor_options *prepared) {
    *prepared = (struct tensor_options){.own = *options};
    if (options->tensors.count == 0) {
        return EXIT_DONE;
    }
    struct options *own = &prepared->own;
    own->tensor_set = &prepared->set;
    own->ops = (struct string_list){0};
    own->batch = own->heads = own->kv_heads = own->head_dim = own->seq_q = own->seq_kv =
        (struct size_list){0};
    const struct tensor_source source = source_of(options);
    char error[TENSOR_ERROR_BYTES];
    if (!tensors_load(&prepared->set, &source, error)) {
        diag_error("--tensors: %s", error);
        return EXIT_USAGE;
    }
    // The workers read them again: here their shape and hash are enough.
    tensors_drop(&prepared->set);
    const struct mha_shape *shape = &prepared->set.shape;
    size_list_add(&own->batch, shape->batch);
    size_list_add(&own->heads, shape->heads);
    size_list_add(&own->kv_heads, shape->kv_heads);
    size_list_add(&own->head_dim, shape->head_dim);
    size_list_add(&own->seq_q, shape->seq_q);
    size_list_add(&own->seq_kv, shape->seq_kv);
    return pick_ops(prepared, &options->ops);
}

void tensors_options_free(struct tensor_options *prepared) {
    struct options *own = &prepared->own;
    if (own->tensor_set == NULL) {
        return;  // all else is borrowed
    }
    struct size_list *const lists[] = {&own->batch,    &own->heads, &own->kv_heads,
                                       &own->head_dim, &own->seq_q, &own->seq_kv};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        size_list_free(lists[i]);
    }
    string_list_free(&own->ops);
    own->tensor_set = NULL;
}

static json_t *words_of(const struct string_list *list) {
    json_t *words = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_t *word = json_string(list->items[i]);
        json_array_append_new(words, word != NULL ? word : json_null());
    }
    return words;
}

json_t *tensors_to_json(const struct options *options) {
    if (options->tensor_set == NULL) {
        return json_null();
    }
    return json_pack(
        "{s:o, s:o, s:s, s:s}", "files", words_of(&options->tensors), "names",
        words_of(&options->tensor_names), "layout",
        options->tensor_layout != NULL ? options->tensor_layout : option_layout_word(0), "hash",
        options->tensor_set->hash);
}

static void append_words(char *text, size_t size, const char *option,
                         const struct string_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", i == 0 ? option : ",", list->items[i]);
    }
}

void tensors_problem_options(char *text, size_t size, const struct options *options,
                             const struct problem *problem) {
    if (options->tensor_set == NULL) {
        problem_options(text, size, problem);
        return;
    }
    problem_options_unshaped(text, size, problem);
    append_words(text, size, " --tensors ", &options->tensors);
    append_words(text, size, " --tensor-names ", &options->tensor_names);
    if (options->tensor_layout != NULL) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, " --tensor-layout %s", options->tensor_layout);
    }
}

// --- the worker's side
// --------------------------------------------------------------------------------

/// What this process fills inputs with.
static struct tensor_set installed;

static void take_words(struct string_list *list, const json_t *words) {
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));
        string_list_add(list, word != NULL ? word : "", word != NULL ? strlen(word) : 0);
    }
}

bool tensors_install(const json_t *json, char error[TENSOR_ERROR_BYTES]) {
    struct string_list files = {0}, names = {0};
    take_words(&files, json_object_get(json, "files"));
    take_words(&names, json_object_get(json, "names"));
    const struct tensor_source source = {&files, &names,
                                         json_string_value(json_object_get(json, "layout"))};
    const char *hash = json_string_value(json_object_get(json, "hash"));
    tensors_drop(&installed);
    installed = (struct tensor_set){0};
    bool good = tensors_load(&installed, &source, error);
    if (good && strcmp(installed.hash, hash != NULL ? hash : "") != 0) {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): nothing is loaded from no file
        good = fail(error, "%.300s: its data has changed since the program began", files.items[0]);
        tensors_drop(&installed);
        installed = (struct tensor_set){0};
    }
    string_list_free(&files);
    string_list_free(&names);
    return good;
}

bool tensors_take(const struct op_driver *driver) {
    return installed.tensors[TENSORS_Q].given && takes(&installed, driver->name);
}

/// The scores of one query, in double: 1/sqrt(head_dim) is the scale of every op. Eight sums in a
/// fixed order: the same values in every build, and fast enough.
static void score_row(const struct tensor_set *set, size_t batch, size_t head, size_t row,
                      double *scores) {
    enum { SUMS = 8 };
    const struct mha_shape *shape = &set->shape;
    const size_t kv_head = head / (shape->heads / shape->kv_heads);
    const float *q = row_of(&set->tensors[TENSORS_Q], batch, head, row);
    for (size_t j = 0; j < shape->seq_kv; j++) {
        const float *k = row_of(&set->tensors[TENSORS_K], batch, kv_head, j);
        double sums[SUMS] = {0};
        for (size_t i = 0; i < shape->head_dim; i++) {
            sums[i % SUMS] += (double)q[i] * (double)k[i];
        }
        double sum = 0;
        for (size_t i = 0; i < SUMS; i++) {
            sum += sums[i];
        }
        scores[j] = sum / sqrt((double)shape->head_dim);
    }
}

/// Scores to weights under the mask; what is masked, and a query without any key, gets zeros.
static void weigh_row(const struct mha_mask *mask, size_t row, double *scores) {
    const struct mha_span span = mha_row_span(mask, row);
    double most = -HUGE_VAL, sum = 0;
    for (size_t j = span.begin; j < span.end; j++) {
        most = fmax(most, scores[j]);
    }
    for (size_t j = 0; j < mask->seq_kv; j++) {
        scores[j] = j >= span.begin && j < span.end ? exp(scores[j] - most) : 0;
        sum += scores[j];
    }
    for (size_t j = 0; j < mask->seq_kv; j++) {
        scores[j] = sum > 0 ? scores[j] / sum : 0;
    }
}

static void fill_from_scores(const struct problem *problem, const struct tensor *tensor,
                             size_t plane, size_t row, bool weights, double *scores) {
    const size_t heads = installed.shape.heads;
    void *to = tensor_at(tensor, plane, row);
    score_row(&installed, plane / heads, plane % heads, row, scores);
    if (weights) {
        const struct mha_mask mask = problem_mask(problem, plane / heads);
        weigh_row(&mask, row, scores);
    }
    for (size_t c = 0; c < tensor->shape.cols; c++) {
        tensor_store(tensor, to, c, scores[c]);
    }
}

bool tensors_fill_rows(const struct op_driver *driver, const struct problem *problem,
                       const struct tensor *tensor, size_t plane, size_t first, size_t rows) {
    if (!tensors_take(driver)) {
        return false;
    }
    size_t at = 0;
    while (at < INPUTS && (strcmp(inputs[at].op, driver->name) != 0 ||
                           strcmp(inputs[at].tensor, tensor->shape.name) != 0)) {
        at++;
    }
    if (at == INPUTS) {
        return false;
    }
    const enum source source = inputs[at].source;
    double *scores = NULL;
    if (source == SOURCE_SCORES || source == SOURCE_WEIGHTS) {
        scores = diag_alloc(calloc(tensor->shape.cols + 1, sizeof(*scores)));
    }
    for (size_t r = first; r < first + rows; r++) {
        if (scores != NULL) {
            fill_from_scores(problem, tensor, plane, r, source == SOURCE_WEIGHTS, scores);
        } else {
            const struct tensor_values *t = &installed.tensors[source - SOURCE_Q];
            const float *from = row_of(t, plane / t->heads, plane % t->heads, r);
            void *to = tensor_at(tensor, plane, r);
            for (size_t c = 0; c < tensor->shape.cols; c++) {
                tensor_store(tensor, to, c, (double)from[c]);
            }
        }
    }
    free(scores);
    return true;
}
