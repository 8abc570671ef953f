/// Rows and results as JSON, and back.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data.h"
#include "diag.h"
#include "op.h"
#include "results.h"
#include "stats.h"

// --- making
// -----------------------------------------------------------------------------------------

static void put(json_t *object, const char *key, json_t *value) {
    // jansson refuses a NULL value; every maker below yields one only without memory.
    if (json_object_set_new(object, key, value) != 0) {
        diag_alloc(NULL);
    }
}

static void append(json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) {
        diag_alloc(NULL);
    }
}

/// Makes a number, or null of what JSON has no number for.
static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *integer(uint64_t value) {
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

/// Makes a string, or null of NULL. Paths and messages may hold bytes that are no UTF-8, which JSON
/// cannot carry: these become question marks.
static json_t *string(const char *text) {
    if (text == NULL) {
        return json_null();
    }
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    char *copy = diag_alloc(strdup(text));
    for (char *c = copy; *c != '\0'; c++) {
        if ((unsigned char)*c >= 0x80) {
            *c = '?';
        }
    }
    value = json_string(copy);
    free(copy);
    return value;
}

static json_t *string_or_null(const char *text) {
    return string(text != NULL && text[0] != '\0' ? text : NULL);
}

static json_t *samples_to_json(const struct row *row) {
    json_t *launches = diag_alloc(json_array());
    for (size_t i = 0; i < row->launches; i++) {
        json_t *samples = diag_alloc(json_array());
        for (size_t j = 0; j < row->samples[i].count; j++) {
            append(samples, number(row->samples[i].ns[j]));
        }
        append(launches, samples);
    }
    return launches;
}

static json_t *shape_to_json(const struct mha_shape *shape) {
    json_t *object = diag_alloc(json_object());
    put(object, "batch", integer(shape->batch));
    put(object, "heads", integer(shape->heads));
    put(object, "kv_heads", integer(shape->kv_heads));
    put(object, "seq_q", integer(shape->seq_q));
    put(object, "seq_kv", integer(shape->seq_kv));
    put(object, "head_dim", integer(shape->head_dim));
    return object;
}

/// Makes the breakdown of a whole layer; single ops have no steps.
static json_t *steps_to_json(const struct row *row) {
    if (row->steps == 0) {
        return json_null();
    }
    json_t *steps = diag_alloc(json_array());
    for (size_t i = 0; i < row->steps; i++) {
        json_t *step = diag_alloc(json_object());
        put(step, "op", string(row->step[i].op));
        put(step, "kernel", string(row->step[i].kernel));
        put(step, "ns", number(row->step[i].ns));
        put(step, "share", number(row->step[i].share));
        append(steps, step);
    }
    return steps;
}

json_t *row_to_json(const struct row *row) {
    char mask[32], position[32];
    problem_mask_text(mask, &row->problem);
    problem_position_text(position, &row->problem);
    json_t *object = diag_alloc(json_object());
    put(object, "op", string(row->problem.op));
    put(object, "dtype", string(row->problem.dtype));
    put(object, "kernel", string(row->kernel));
    put(object, "isa", string(row->isa));
    put(object, "tag", string(row->tag));
    put(object, "peer", json_boolean(row->peer));
    put(object, "plugin", string(row->plugin));
    put(object, "shape", shape_to_json(&row->problem.shape));
    put(object, "mask", string(mask));
    put(object, "position", string(position));
    put(object, "cache", string(problem_cache_text(row->problem.cache)));
    put(object, "data", string(row->problem.data));
    put(object, "threads", json_integer(row->threads));
    put(object, "verdict", string(verdict_text(row->verdict)));
    put(object, "reason", string(row->reason));
    put(object, "max_ulp", number(row->max_ulp));
    put(object, "bound_share", number(row->bound_share));
    put(object, "checked_share", number(row->checked_share));
    put(object, "median_ns", number(row->median_ns));
    put(object, "min_ns", number(row->min_ns));
    put(object, "spread_within", number(row->spread_within));
    put(object, "spread_between", number(row->spread_between));
    put(object, "iterations", integer(row->iterations));
    put(object, "samples_ns", samples_to_json(row));
    put(object, "disturbed", integer(row->disturbed));
    put(object, "flops", number(row->flops));
    put(object, "bytes", number(row->bytes));
    put(object, "gflops", number(row->gflops));
    put(object, "gbytes_per_s", number(row->gbytes_per_s));
    put(object, "ceiling_kind", string(row->ceiling_kind));
    put(object, "ceiling_share", number(row->ceiling_share));
    put(object, "effective_ghz", number(row->effective_ghz));
    put(object, "speedup_scalar", number(row->speedup_scalar));
    put(object, "speedup_autovec", number(row->speedup_autovec));
    put(object, "best_peer", string(row->best_peer));
    put(object, "speedup_best_peer", number(row->speedup_best_peer));
    put(object, "pack_ns", number(row->pack_ns));
    put(object, "create_ns", number(row->create_ns));
    put(object, "steps", steps_to_json(row));
    put(object, "code_hash", string_or_null(row->code_hash));
    put(object, "repro", string(row->repro));
    return object;
}

/// Makes an entry as Google Benchmark 1.7 writes it, for readers that know nothing of ours.
static json_t *entry_to_json(const struct row *row, size_t family, size_t instance) {
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    const bool timed = row_has_time(row);
    json_t *entry = diag_alloc(json_object());
    put(entry, "name", string(name));
    put(entry, "family_index", integer(family));
    put(entry, "per_family_instance_index", integer(instance));
    put(entry, "run_name", string(name));
    put(entry, "run_type", string("iteration"));
    put(entry, "repetitions", json_integer(1));
    put(entry, "repetition_index", json_integer(0));
    put(entry, "threads", json_integer(row->threads));
    if (!timed) {
        char message[512];
        (void)snprintf(message, sizeof(message), "%s%s%s", verdict_text(row->verdict),
                       row->reason != NULL ? ": " : "", row->reason != NULL ? row->reason : "");
        put(entry, "error_occurred", json_true());
        put(entry, "error_message", string(message));
    }
    put(entry, "iterations", integer(timed ? row->iterations : 0));
    put(entry, "real_time", json_real(timed ? row->median_ns : 0.0));
    // Not the CPU time: that would be the main thread's alone, which says nothing of a team, and
    // several readers judge by cpu_time. So every reader sees the wall time. bytes_per_second and
    // items_per_second stay out too, since some readers take them for the value instead.
    put(entry, "cpu_time", json_real(timed ? row->median_ns : 0.0));
    put(entry, "time_unit", string("ns"));
    put(entry, "mhabench", row_to_json(row));
    return entry;
}

json_t *results_to_json(const struct result *result) {
    json_t *entries = diag_alloc(json_array());
    // A family is one kernel, as registered; its instances are the problems, in order of
    // appearance.
    size_t families = 0;
    size_t *family = diag_alloc(calloc(result->count + 1, sizeof(*family)));
    size_t *instances = diag_alloc(calloc(result->count + 1, sizeof(*instances)));
    json_t *known = diag_alloc(json_object());
    for (size_t i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        const json_t *index = json_object_get(known, row->kernel);
        if (index == NULL) {
            put(known, row->kernel, integer(families));
            family[i] = families++;
        } else {
            family[i] = (size_t)json_integer_value(index);
        }
        append(entries, entry_to_json(row, family[i], instances[family[i]]++));
    }
    json_decref(known);
    free(family);
    free(instances);
    json_t *root = diag_alloc(json_object());
    put(root, "context",
        result->context != NULL ? json_incref(result->context) : diag_alloc(json_object()));
    put(root, "benchmarks", entries);
    return root;
}

json_t *ceilings_to_json(const struct ceiling_list *list) {
    json_t *array = diag_alloc(json_array());
    for (size_t i = 0; i < list->count; i++) {
        const struct ceiling *ceiling = &list->items[i];
        json_t *object = diag_alloc(json_object());
        put(object, "kind", string(ceiling->kind));
        put(object, "isa", string(ceiling->isa));
        put(object, "dtype", string(ceiling->dtype));
        put(object, "level", string_or_null(ceiling->level));
        put(object, "mix", string_or_null(ceiling->mix));
        put(object, "bytes", number(ceiling->bytes > 0.0 ? ceiling->bytes : UNKNOWN));
        put(object, "threads", json_integer(ceiling->threads));
        put(object, "value", number(ceiling->value));
        put(object, "unit", string(strcmp(ceiling->kind, "fma") == 0 ? "GFLOP/s" : "GB/s"));
        put(object, "spread", number(ceiling->spread));
        put(object, "samples", integer(ceiling->samples));
        append(array, object);
    }
    return array;
}

// --- reading
// ----------------------------------------------------------------------------------------

/// Reads members of one object; remembers the first thing that is wrong.
struct reader {
    const json_t *object;
    const char *where;  ///< Prefix of a member's name in messages: "" or "shape.".
    bool failed;
    char *why;
    size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static void fail(struct reader *reader, const char *format,
                                                       ...) {
    if (reader->failed) {
        return;
    }
    reader->failed = true;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(reader->why, reader->why_bytes, format, arguments);
    va_end(arguments);
}

/// Gets a member that must be there; NULL when it is not.
static const json_t *member(struct reader *reader, const char *key) {
    const json_t *value = json_object_get(reader->object, key);
    if (value == NULL) {
        fail(reader, "\"%s%s\" is missing", reader->where, key);
    }
    return value;
}

/// Reads a number that is not negative; null is NAN.
static double read_number(struct reader *reader, const char *key) {
    const json_t *value = member(reader, key);
    if (json_is_number(value) && json_number_value(value) >= 0.0) {
        return json_number_value(value);
    }
    if (value != NULL && !json_is_null(value)) {
        fail(reader, "\"%s%s\" is not a number >= 0 or null", reader->where, key);
    }
    return UNKNOWN;
}

static json_int_t read_integer(struct reader *reader, const char *key, json_int_t min,
                               json_int_t max) {
    const json_t *value = member(reader, key);
    if (json_is_integer(value) && json_integer_value(value) >= min &&
        json_integer_value(value) <= max) {
        return json_integer_value(value);
    }
    if (value != NULL) {
        fail(reader,
             "\"%s%s\" is not an integer from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
             reader->where, key, min, max);
    }
    return min;
}

static bool read_bool(struct reader *reader, const char *key) {
    const json_t *value = member(reader, key);
    if (value != NULL && !json_is_boolean(value)) {
        fail(reader, "\"%s%s\" is neither true nor false", reader->where, key);
    }
    return json_is_true(value);
}

/// Reads a string; null is NULL when `optional`. The text belongs to the JSON value.
static const char *read_text(struct reader *reader, const char *key, bool optional) {
    const json_t *value = member(reader, key);
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (value != NULL && !(optional && json_is_null(value))) {
        fail(reader, "\"%s%s\" is not a string%s", reader->where, key, optional ? " or null" : "");
    }
    return NULL;
}

/// Reads a string into memory of its own.
static char *read_string(struct reader *reader, const char *key, bool optional) {
    const char *text = read_text(reader, key, optional);
    return text != NULL ? diag_alloc(strdup(text)) : NULL;
}

/// Gets a copy of `text` that lives as long as the process, the same for equal texts. Op and dtype
/// of a problem point to static storage; a file may name ones that this build does not have.
static const char *intern(const char *text) {
    struct word {
        struct word *next;
        char text[];
    };
    static struct word *words;
    for (const struct word *word = words; word != NULL; word = word->next) {
        if (strcmp(word->text, text) == 0) {
            return word->text;
        }
    }
    const size_t bytes = strlen(text) + 1;
    struct word *word = diag_alloc(malloc(sizeof(*word) + bytes));
    memcpy(word->text, text, bytes);
    word->next = words;
    words = word;
    return word->text;
}

/// Reads a lower-case word such as an op's name, short enough for any fixed array that it meets.
static const char *read_word(struct reader *reader, const char *key) {
    enum { WORD_BYTES = 32 };
    const char *text = read_text(reader, key, false);
    if (text == NULL) {
        return "";
    }
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (length == 0 || length >= WORD_BYTES || text[length] != '\0') {
        fail(reader, "\"%s%s\" is not a word", reader->where, key);
        return "";
    }
    const struct op_driver *driver = op_find(text);
    return driver != NULL ? driver->name : intern(text);
}

static void read_mask(struct reader *reader, struct problem *problem) {
    const char *text = read_text(reader, "mask", false);
    if (text != NULL && !problem_mask_parse(problem, text)) {
        fail(reader, "\"mask\": '%.40s' is not none, causal, lengths or window:N", text);
    }
}

/// Results from before there was a choice have no such member.
static void read_data(struct reader *reader, struct problem *problem) {
    const json_t *value = json_object_get(reader->object, "data");
    if (value == NULL || json_is_null(value)) {
        return;
    }
    const struct data_class *data =
        json_is_string(value) ? data_class_find(json_string_value(value)) : NULL;
    if (data == NULL) {
        fail(reader, "\"data\" is no class of data");
        return;
    }
    const struct op_driver *driver = op_find(problem->op);
    const bool first = driver != NULL && strcmp(driver->classes[0], data->name) == 0;
    problem->data = first ? NULL : data->name;
}

static void read_problem(struct reader *reader, struct problem *problem) {
    problem->op = read_word(reader, "op");
    problem->dtype = read_word(reader, "dtype");
    const json_t *object = member(reader, "shape");
    if (object != NULL && !json_is_object(object)) {
        fail(reader, "\"shape\" is not an object");
    }
    if (!reader->failed) {
        struct reader inner = {object, "shape.", false, reader->why, reader->why_bytes};
        struct mha_shape *shape = &problem->shape;
        const json_int_t most = INT64_MAX;
        shape->batch = (size_t)read_integer(&inner, "batch", 1, most);
        shape->heads = (size_t)read_integer(&inner, "heads", 1, most);
        shape->kv_heads = (size_t)read_integer(&inner, "kv_heads", 1, most);
        shape->seq_q = (size_t)read_integer(&inner, "seq_q", 0, most);
        shape->seq_kv = (size_t)read_integer(&inner, "seq_kv", 0, most);
        shape->head_dim = (size_t)read_integer(&inner, "head_dim", 1, most);
        reader->failed = inner.failed;
    }
    read_mask(reader, problem);
    const char *position = read_text(reader, "position", false);
    if (position != NULL && !problem_position_parse(problem, position)) {
        fail(reader,
             "\"position\": '%.40s' is not none, sinusoid, learned, rope[:half][:BASE], alibi or "
             "t5[:causal]",
             position);
    }
    const char *cache = read_text(reader, "cache", false);
    if (cache != NULL && !problem_cache_parse(problem, cache)) {
        fail(reader, "\"cache\": '%.40s' is neither hot nor cold", cache);
    }
    read_data(reader, problem);
}

static void read_samples(struct reader *reader, struct row *row) {
    const json_t *launches = member(reader, "samples_ns");
    if (launches == NULL) {
        return;
    }
    if (!json_is_array(launches)) {
        fail(reader, "\"samples_ns\" is not an array of arrays");
        return;
    }
    const size_t count = json_array_size(launches);
    if (count == 0) {
        return;
    }
    row->samples = diag_alloc(calloc(count, sizeof(*row->samples)));
    row->launches = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *samples = json_array_get(launches, i);
        if (!json_is_array(samples)) {
            fail(reader, "\"samples_ns\" is not an array of arrays");
            return;
        }
        struct launch_samples *launch = &row->samples[i];
        launch->count = json_array_size(samples);
        // One more than needed: calloc(0) may be NULL.
        launch->ns = diag_alloc(calloc(launch->count + 1, sizeof(*launch->ns)));
        for (size_t j = 0; j < launch->count; j++) {
            const json_t *sample = json_array_get(samples, j);
            if (!json_is_null(sample) &&
                !(json_is_number(sample) && json_number_value(sample) > 0.0)) {
                fail(reader, "\"samples_ns\"[%zu][%zu] is not a number > 0 or null", i, j);
            }
            launch->ns[j] = json_is_number(sample) ? json_number_value(sample) : UNKNOWN;
        }
    }
}

static void read_verdict(struct reader *reader, struct row *row) {
    const char *text = read_text(reader, "verdict", false);
    if (text != NULL) {
        row->verdict = verdict_find(text);
        if (strcmp(text, verdict_text(row->verdict)) != 0) {
            fail(reader, "\"verdict\": '%.40s' is not known", text);
        }
    }
}

static void read_ceiling_kind(struct reader *reader, struct row *row) {
    const char *text = read_text(reader, "ceiling_kind", true);
    if (text != NULL) {
        row->ceiling_kind = strcmp(text, "fma") == 0 ? "fma" : "bandwidth";
        if (strcmp(text, row->ceiling_kind) != 0) {
            fail(reader, "\"ceiling_kind\": '%.40s' is neither fma nor bandwidth", text);
        }
    }
}

/// Reads one step; false when it is none. What it has allocated is the caller's in any case.
static bool read_step(const json_t *json, struct row_step *step) {
    const json_t *op = json_object_get(json, "op"), *kernel = json_object_get(json, "kernel");
    const json_t *ns = json_object_get(json, "ns");
    if (!json_is_string(op) || !json_is_string(kernel) || !json_is_number(ns) ||
        !(json_number_value(ns) >= 0)) {
        return false;
    }
    step->op = diag_alloc(strdup(json_string_value(op)));
    step->kernel = diag_alloc(strdup(json_string_value(kernel)));
    step->ns = json_number_value(ns);
    return true;
}

static void free_steps(struct row_step *step, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(step[i].op);
        free(step[i].kernel);
    }
    free(step);
}

bool row_add_steps(struct row *row, const json_t *steps) {
    const size_t count = json_array_size(steps);
    struct row_step *step = diag_alloc(calloc(count + 1, sizeof(*step)));
    bool good = count > 0;
    double sum = 0;
    for (size_t i = 0; i < count && good; i++) {
        good = read_step(json_array_get(steps, i), &step[i]);
        if (good && row->steps == count && row->step[i].ns < step[i].ns) {
            step[i].ns = row->step[i].ns;
        }
        sum += step[i].ns;
    }
    free_steps(row->step, row->steps);
    row->steps = good ? count : 0;
    row->step = good ? step : NULL;
    if (!good) {
        free_steps(step, count);
    }
    for (size_t i = 0; i < row->steps; i++) {
        row->step[i].share = sum > 0 ? row->step[i].ns / sum : UNKNOWN;
    }
    return good;
}

bool row_from_json(const json_t *object, struct row *row, char *why, size_t why_bytes) {
    memset(row, 0, sizeof(*row));
    struct reader reader = {.object = object, .where = "", .why_bytes = why_bytes};
    reader.why = why;
    if (!json_is_object(object)) {
        fail(&reader, "it is not an object");
        return false;
    }
    read_problem(&reader, &row->problem);
    row->kernel = read_string(&reader, "kernel", false);
    row->isa = read_string(&reader, "isa", false);
    row->tag = read_string(&reader, "tag", false);
    row->peer = read_bool(&reader, "peer");
    row->plugin = read_string(&reader, "plugin", true);
    row->threads = (int)read_integer(&reader, "threads", 1, INT_MAX);
    read_verdict(&reader, row);
    row->reason = read_string(&reader, "reason", true);
    row->max_ulp = read_number(&reader, "max_ulp");
    row->bound_share = read_number(&reader, "bound_share");
    row->checked_share = read_number(&reader, "checked_share");
    row->median_ns = read_number(&reader, "median_ns");
    row->min_ns = read_number(&reader, "min_ns");
    row->spread_within = read_number(&reader, "spread_within");
    row->spread_between = read_number(&reader, "spread_between");
    row->iterations = (uint64_t)read_integer(&reader, "iterations", 0, INT64_MAX);
    read_samples(&reader, row);
    row->disturbed = (size_t)read_integer(&reader, "disturbed", 0, INT64_MAX);
    row->flops = read_number(&reader, "flops");
    row->bytes = read_number(&reader, "bytes");
    row->gflops = read_number(&reader, "gflops");
    row->gbytes_per_s = read_number(&reader, "gbytes_per_s");
    read_ceiling_kind(&reader, row);
    row->ceiling_share = read_number(&reader, "ceiling_share");
    row->effective_ghz = read_number(&reader, "effective_ghz");
    row->speedup_scalar = read_number(&reader, "speedup_scalar");
    row->speedup_autovec = read_number(&reader, "speedup_autovec");
    row->best_peer = read_string(&reader, "best_peer", true);
    row->speedup_best_peer = read_number(&reader, "speedup_best_peer");
    row->pack_ns = read_number(&reader, "pack_ns");
    row->create_ns = read_number(&reader, "create_ns");
    const json_t *steps = member(&reader, "steps");
    if (steps != NULL && !json_is_null(steps) && !row_add_steps(row, steps)) {
        fail(&reader,
             "\"steps\" is not an array of steps, each with \"op\", \"kernel\" and \"ns\"");
    }
    row->code_hash = read_string(&reader, "code_hash", true);
    if (row->code_hash == NULL) {
        row->code_hash = diag_alloc(strdup(""));
    }
    row->repro = read_string(&reader, "repro", true);
    if (reader.failed) {
        row_free(row);
        return false;
    }
    return true;
}

/// A stream that is read up to a limit.
struct source {
    FILE *file;
    size_t left;
    size_t memory;  ///< Estimate of what the values so far take.
    bool too_long, too_dense;
    bool error;
};

/// Largest result file. A sweep of 10,000 rows with 100 samples each has some 20 MB; a number takes
/// up to 16 times its text's size in memory.
enum { FILE_BYTES_MAX = 64 * 1024 * 1024 };

/// Most memory that a file may take: a full file of samples with 10 digits each has 0.3 GB. What
/// exceeds it consists of tiny values, as no result does.
enum { FILE_MEMORY_MAX = 512 * 1024 * 1024 };

/// Estimates the memory of the values that begin in some text, by what jansson 2.14 allocates on a
/// machine of 64 bits: a number with its slot, an array with 8 slots, an object with 8 buckets, and
/// for each quote half of what a string takes beyond a number.
static size_t estimate_memory(const char *text, size_t bytes) {
    enum { VALUE = 48, ARRAY = 144, OBJECT = 400, QUOTE = 24 };
    size_t memory = 0;
    for (size_t i = 0; i < bytes; i++) {
        switch (text[i]) {
            case ',':
                memory += VALUE;
                break;
            case '[':
                memory += ARRAY;
                break;
            case '{':
                memory += OBJECT;
                break;
            case '"':
                memory += QUOTE;
                break;
            default:
                break;
        }
    }
    return memory;
}

static size_t read_some(void *buffer, size_t bytes, void *data) {
    struct source *source = data;
    if (source->left == 0) {
        source->too_long = getc(source->file) != EOF;
        return source->too_long ? (size_t)-1 : 0;
    }
    const size_t got = fread(buffer, 1, bytes < source->left ? bytes : source->left, source->file);
    source->left -= got;
    if (got == 0 && ferror(source->file)) {
        source->error = true;
        return (size_t)-1;
    }
    source->memory += estimate_memory(buffer, got);
    source->too_dense = source->memory > FILE_MEMORY_MAX;
    return source->too_dense ? (size_t)-1 : got;
}

json_t *results_load(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        diag_error("%s: %s", path, strerror(errno));
        return NULL;
    }
    struct source source = {.file = file, .left = FILE_BYTES_MAX};
    struct stat status;
    // A file that is known to be too long is not even begun.
    source.too_long = fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
                      status.st_size > FILE_BYTES_MAX;
    json_error_t error;
    errno = 0;
    json_t *root = NULL;
    if (!source.too_long) {
        root = json_load_callback(read_some, &source, JSON_REJECT_DUPLICATES, &error);
    }
    const int cause = errno;
    (void)fclose(file);  // Read only: nothing can be lost.
    if (source.error) {
        diag_error("%s: %s", path, strerror(cause));
    } else if (source.too_long) {
        diag_error("%s: larger than %d bytes: not a result file", path, FILE_BYTES_MAX);
    } else if (source.too_dense) {
        diag_error("%s: its values would take more than %d bytes of memory: not a result file",
                   path, FILE_MEMORY_MAX);
    } else if (root == NULL) {
        diag_error("%s: line %d, column %d: %s", path, error.line, error.column, error.text);
    } else {
        return root;
    }
    json_decref(root);
    return NULL;
}

struct named {
    char name[CASE_NAME_BYTES];
    size_t index;
};

static int compare_named(const void *a, const void *b) {
    const struct named *x = a;
    const struct named *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/// Two rows of one name cannot be told apart by whoever compares: both are named and refused.
static bool names_differ(const char *path, const struct result *result) {
    struct named *names = diag_alloc(calloc(result->count + 1, sizeof(*names)));
    for (size_t i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        problem_case_name(names[i].name, &row->problem, row->isa, row->tag, row->threads);
        names[i].index = i;
    }
    qsort(names, result->count, sizeof(*names), compare_named);
    bool differ = true;
    for (size_t i = 1; i < result->count && differ; i++) {
        if (strcmp(names[i - 1].name, names[i].name) == 0) {
            diag_error("%s: benchmarks[%zu] and benchmarks[%zu] are both %s", path,
                       names[i - 1].index, names[i].index, names[i].name);
            differ = false;
        }
    }
    free(names);
    return differ;
}

/// Fills the result from the file's JSON; on failure prints a line and returns false.
static bool fill(const char *path, const json_t *root, struct result *result) {
    json_t *context = json_object_get(root, "context");
    const json_t *entries = json_object_get(root, "benchmarks");
    const json_t *own = json_object_get(context, "mhabench");
    if (!json_is_object(context) || !json_is_array(entries)) {
        diag_error("%s: not a result file: no \"context\" and \"benchmarks\"", path);
        return false;
    }
    const json_t *version = json_object_get(own, "schema_version");
    if (!json_is_integer(version)) {
        diag_error("%s: not a result of mhabench: no context.mhabench.schema_version", path);
        return false;
    }
    if (json_integer_value(version) != RESULTS_SCHEMA_VERSION) {
        diag_error("%s: schema_version is %" JSON_INTEGER_FORMAT ", this program reads %d", path,
                   json_integer_value(version), RESULTS_SCHEMA_VERSION);
        return false;
    }
    result->context = json_incref(context);
    const size_t count = json_array_size(entries);
    result->rows = diag_alloc(calloc(count + 1, sizeof(*result->rows)));
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_object_get(json_array_get(entries, i), "mhabench");
        char why[256];
        if (object == NULL) {
            diag_error("%s: benchmarks[%zu] has no \"mhabench\" object", path, i);
            return false;
        }
        if (!row_from_json(object, &result->rows[i], why, sizeof(why))) {
            diag_error("%s: benchmarks[%zu].mhabench: %s", path, i, why);
            return false;
        }
        result->count = i + 1;
    }
    return names_differ(path, result);
}

int results_read(const char *path, struct result *result) {
    memset(result, 0, sizeof(*result));
    json_t *root = results_load(path);
    if (root == NULL) {
        return EXIT_USAGE;
    }
    const int code = results_from_json(path, root, result);
    json_decref(root);
    return code;
}

int results_from_json(const char *path, const json_t *root, struct result *result) {
    memset(result, 0, sizeof(*result));
    if (!fill(path, root, result)) {
        results_free(result);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

/// Gets the static spelling of one of `words`; "" when `value` is none of them.
static const char *one_of(const json_t *value, const char *const *words) {
    const char *text = json_string_value(value);
    for (; text != NULL && *words != NULL; words++) {
        if (strcmp(text, *words) == 0) {
            return *words;
        }
    }
    return "";
}

static void copy_text(char *to, size_t bytes, const json_t *from) {
    const char *text = json_string_value(from);
    (void)snprintf(to, bytes, "%s", text != NULL ? text : "");
}

void ceilings_from_json(const json_t *context, struct ceiling_list *list) {
    static const char *const kinds[] = {"fma", "bandwidth", NULL};
    static const char *const levels[] = {"L1", "L2", "L3", "DRAM", NULL};
    static const char *const mixes[] = {"read",           "write", "copy", "streaming write",
                                        "streaming copy", NULL};
    const json_t *array = json_object_get(json_object_get(context, "mhabench"), "ceilings");
    const size_t count = json_array_size(array);
    list->count = 0;
    list->items = diag_alloc(calloc(count + 1, sizeof(*list->items)));
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(array, i);
        struct ceiling ceiling = {0};
        ceiling.kind = one_of(json_object_get(object, "kind"), kinds);
        ceiling.level = one_of(json_object_get(object, "level"), levels);
        ceiling.mix = one_of(json_object_get(object, "mix"), mixes);
        copy_text(ceiling.isa, sizeof(ceiling.isa), json_object_get(object, "isa"));
        copy_text(ceiling.dtype, sizeof(ceiling.dtype), json_object_get(object, "dtype"));
        const json_int_t threads = json_integer_value(json_object_get(object, "threads"));
        const json_t *spread = json_object_get(object, "spread");
        ceiling.bytes = json_number_value(json_object_get(object, "bytes"));
        ceiling.threads = threads >= 1 && threads <= INT_MAX ? (int)threads : 0;
        ceiling.value = json_number_value(json_object_get(object, "value"));
        ceiling.spread = json_is_number(spread) ? json_number_value(spread) : UNKNOWN;
        const json_int_t samples = json_integer_value(json_object_get(object, "samples"));
        ceiling.samples = samples > 0 ? (size_t)samples : 0;
        const bool bandwidth = strcmp(ceiling.kind, "bandwidth") == 0;
        if (ceiling.kind[0] != '\0' && ceiling.threads >= 1 && ceiling.value > 0.0 &&
            (!bandwidth || ceiling.level[0] != '\0')) {
            list->items[list->count++] = ceiling;
        }
    }
}

void ceilings_free(struct ceiling_list *list) {
    free(list->items);
    list->items = NULL;
    list->count = 0;
}
