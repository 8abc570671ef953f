/// A comparison as JSON, and back.
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "report.h"
#include "report_text.h"
#include "stats.h"

static const char schema_key[] = "mhabench_comparison";

static void put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) {
        diag_alloc(NULL);
    }
}

static json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *integer(size_t value) {
    return json_integer((json_int_t)value);
}

/// Makes a string, or null of NULL. A path may hold bytes that are no UTF-8, which JSON cannot
/// carry: these become question marks.
static json_t *string(const char *text) {
    if (text == NULL) {
        return json_null();
    }
    char *copy = diag_alloc(strdup(text));
    for (char *c = copy; *c != '\0';) {
        const size_t length = text_character(c);
        if (length == 0) {
            *c = '?';
        }
        c += length > 0 ? length : 1;
    }
    json_t *value = diag_alloc(json_string(copy));
    free(copy);
    return value;
}

static json_t *row_json(const struct comparison *row) {
    json_t *object = diag_alloc(json_object());
    put(object, "name", string(row->name));
    put(object, "old_name", string(row->old_name));
    put(object, "kernel", string(row->kernel));
    put(object, "op", string(row->op));
    put(object, "verdict", string(comparison_text(row->verdict)));
    put(object, "reason", string(row->reason));
    put(object, "base_ns", number(row->base_ns));
    put(object, "new_ns", number(row->new_ns));
    put(object, "change", number(row->change));
    put(object, "low", number(row->low));
    put(object, "high", number(row->high));
    put(object, "smallest_effect", number(row->smallest_effect));
    put(object, "launches", integer(row->launches));
    put(object, "same_code", json_boolean(row->same_code));
    return object;
}

json_t *report_json(const struct comparison_report *report) {
    json_t *root = diag_alloc(json_object());
    put(root, schema_key, json_integer(REPORT_SCHEMA_VERSION));
    put(root, "command", string(report->command));
    put(root, "base", string(report->base_label));
    put(root, "new", string(report->new_label));
    put(root, "floor", number(report->floor));
    put(root, "error_rate", number(report->error_rate));
    put(root, "noise_floor", number(report->noise_floor));
    put(root, "method", string(report->method));
    json_t *notes = diag_alloc(json_array());
    for (size_t i = 0; i < report->notes; i++) {
        if (json_array_append_new(notes, string(report->note[i])) != 0) {
            diag_alloc(NULL);
        }
    }
    put(root, "notes", notes);
    json_t *counts = diag_alloc(json_object());
    for (size_t place = 0; place < TEXT_VERDICTS; place++) {
        size_t count = 0;
        for (size_t i = 0; i < report->count; i++) {
            count += report->rows[i].verdict == text_verdict_at(place);
        }
        put(counts, comparison_text(text_verdict_at(place)), integer(count));
    }
    put(root, "counts", counts);
    json_t *rows = diag_alloc(json_array());
    for (size_t i = 0; i < report->count; i++) {
        if (json_array_append_new(rows, row_json(&report->rows[i])) != 0) {
            diag_alloc(NULL);
        }
    }
    put(root, "rows", rows);
    put(root, "base_context",
        report->base_context != NULL ? json_incref(report->base_context) : json_null());
    put(root, "new_context",
        report->new_context != NULL ? json_incref(report->new_context) : json_null());
    return root;
}

bool report_is_json(const json_t *root) {
    return json_object_get(root, schema_key) != NULL;
}

// --- reading
// ----------------------------------------------------------------------------------------

/// Reads members of one object; remembers the first thing that is wrong.
struct reader {
    const json_t *object;
    long row;  ///< Its index, or -1 of the whole.
    bool failed;
    char *why;
    size_t why_bytes;
};

static void fail(struct reader *reader, const char *key, const char *wanted) {
    if (reader->failed) {
        return;
    }
    reader->failed = true;
    if (reader->row >= 0) {
        (void)snprintf(reader->why, reader->why_bytes, "rows[%ld]: \"%s\" is not %s", reader->row,
                       key, wanted);
    } else {
        (void)snprintf(reader->why, reader->why_bytes, "\"%s\" is not %s", key, wanted);
    }
}

static char *read_text(struct reader *reader, const char *key, bool optional) {
    const json_t *value = json_object_get(reader->object, key);
    if (json_is_string(value)) {
        return diag_alloc(strdup(json_string_value(value)));
    }
    if (!optional || !json_is_null(value)) {
        fail(reader, key, optional ? "a string or null" : "a string");
    }
    return NULL;
}

static double read_number(struct reader *reader, const char *key) {
    const json_t *value = json_object_get(reader->object, key);
    if (!json_is_number(value) && !json_is_null(value)) {
        fail(reader, key, "a number or null");
    }
    return json_is_number(value) ? json_number_value(value) : UNKNOWN;
}

static size_t read_count(struct reader *reader, const char *key) {
    const json_t *value = json_object_get(reader->object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) {
        fail(reader, key, "an integer of at least 0");
        return 0;
    }
    return (size_t)json_integer_value(value);
}

static enum comparison_verdict read_verdict(struct reader *reader) {
    const char *text = json_string_value(json_object_get(reader->object, "verdict"));
    for (size_t place = 0; text != NULL && place < TEXT_VERDICTS; place++) {
        if (strcmp(text, comparison_text(text_verdict_at(place))) == 0) {
            return text_verdict_at(place);
        }
    }
    fail(reader, "verdict", "a verdict");
    return COMPARISON_ERROR;
}

static void read_row(struct reader *reader, struct comparison *row) {
    row->name = read_text(reader, "name", false);
    row->old_name = read_text(reader, "old_name", true);
    row->kernel = read_text(reader, "kernel", false);
    row->op = read_text(reader, "op", false);
    row->verdict = read_verdict(reader);
    row->reason = read_text(reader, "reason", true);
    row->base_ns = read_number(reader, "base_ns");
    row->new_ns = read_number(reader, "new_ns");
    row->change = read_number(reader, "change");
    row->low = read_number(reader, "low");
    row->high = read_number(reader, "high");
    row->smallest_effect = read_number(reader, "smallest_effect");
    row->launches = read_count(reader, "launches");
    row->same_code = json_is_true(json_object_get(reader->object, "same_code"));
}

/// Gets an array's length; fails when it is none.
static size_t read_array(struct reader *reader, const char *key) {
    const json_t *array = json_object_get(reader->object, key);
    if (!json_is_array(array)) {
        fail(reader, key, "an array");
    }
    return json_array_size(array);
}

static json_t *read_context(const json_t *root, const char *key) {
    json_t *context = json_object_get(root, key);
    return json_is_object(context) ? json_incref(context) : NULL;
}

bool report_from_json(const json_t *root, struct comparison_report *report, char *why,
                      size_t why_bytes) {
    struct reader reader = {.object = root, .row = -1, .why_bytes = why_bytes};
    reader.why = why;
    memset(report, 0, sizeof(*report));
    const json_t *version = json_object_get(root, schema_key);
    if (!json_is_integer(version) || json_integer_value(version) != REPORT_SCHEMA_VERSION) {
        fail(&reader, schema_key, "the version that this program reads");
        return false;
    }
    report->command = read_text(&reader, "command", false);
    report->base_label = read_text(&reader, "base", false);
    report->new_label = read_text(&reader, "new", false);
    report->floor = read_number(&reader, "floor");
    report->error_rate = read_number(&reader, "error_rate");
    report->noise_floor = read_number(&reader, "noise_floor");
    report->method = read_text(&reader, "method", false);
    const size_t notes = read_array(&reader, "notes");
    report->note = diag_alloc(calloc(notes + 1, sizeof(*report->note)));
    for (size_t i = 0; i < notes; i++) {
        const char *note = json_string_value(json_array_get(json_object_get(root, "notes"), i));
        if (note == NULL) {
            fail(&reader, "notes", "an array of strings");
        } else {
            report->note[report->notes++] = diag_alloc(strdup(note));
        }
    }
    const size_t count = read_array(&reader, "rows");
    report->rows = diag_alloc(calloc(count + 1, sizeof(*report->rows)));
    for (size_t i = 0; i < count && !reader.failed; i++) {
        reader.object = json_array_get(json_object_get(root, "rows"), i);
        reader.row = (long)i;
        report->count = i + 1;
        read_row(&reader, &report->rows[i]);
    }
    report->base_context = read_context(root, "base_context");
    report->new_context = read_context(root, "new_context");
    if (reader.failed) {
        comparison_free(report);
        return false;
    }
    return true;
}
