#include "protocol.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "diag.h"
#include "op.h"
#include "stats.h"

json_t *protocol_real(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

double protocol_get_real(const json_t *json, const char *key) {
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? json_number_value(value) : UNKNOWN;
}

const char *protocol_get_string(const json_t *json, const char *key) {
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

json_int_t protocol_get_integer(const json_t *json, const char *key) {
    return json_integer_value(json_object_get(json, key));
}

json_t *protocol_problem_to_json(const struct problem *p) {
    const struct mha_shape *s = &p->shape;
    char position[32];
    problem_position_text(position, p);
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:I, s:i, s:s, s:s?}", "op",
                     p->op, "dtype", p->dtype, "batch", (json_int_t)s->batch, "heads",
                     (json_int_t)s->heads, "kv_heads", (json_int_t)s->kv_heads, "seq_q",
                     (json_int_t)s->seq_q, "seq_kv", (json_int_t)s->seq_kv, "head_dim",
                     (json_int_t)s->head_dim, "mask", (int)p->mask, "window", (json_int_t)p->window,
                     "cache", (int)p->cache, "position", position, "data", p->data);
}

bool protocol_problem_from_json(const json_t *json, struct problem *p) {
    const struct op_driver *driver = op_find(protocol_get_string(json, "op"));
    const enum element element = element_find(protocol_get_string(json, "dtype"));
    if (!driver || !op_takes(driver, element)) {
        return false;
    }
    *p = (struct problem){
        .op = driver->name,
        .dtype = element_word(element),
        .shape = {(size_t)protocol_get_integer(json, "batch"),
                  (size_t)protocol_get_integer(json, "heads"),
                  (size_t)protocol_get_integer(json, "kv_heads"),
                  (size_t)protocol_get_integer(json, "seq_q"),
                  (size_t)protocol_get_integer(json, "seq_kv"),
                  (size_t)protocol_get_integer(json, "head_dim")},
        .mask = (enum mha_mask_kind)protocol_get_integer(json, "mask"),
        .window = (size_t)protocol_get_integer(json, "window"),
        .cache = (enum cache_state)protocol_get_integer(json, "cache"),
    };
    const char *data = json_string_value(json_object_get(json, "data"));
    if (data != NULL && !data_class_taken(driver, data)) {
        return false;
    }
    p->data = data != NULL ? data_class_find(data)->name : NULL;
    return problem_position_parse(p, protocol_get_string(json, "position")) && p->shape.batch > 0 &&
           p->shape.heads > 0 && p->shape.kv_heads > 0 && p->shape.head_dim > 0;
}

void protocol_send(int fd, json_t *event) {
    char *text = json_dumps(event, JSON_COMPACT);
    json_decref(event);
    if (!text) {
        diag_error("an event could not be written as JSON");
        _exit(EXIT_USAGE);
    }
    const size_t length = strlen(text);
    text[length] = '\n';  // in place of the final zero
    for (size_t done = 0; done <= length;) {
        const ssize_t n = write(fd, text + done, length + 1 - done);
        if (n < 0 && errno != EINTR) {
            _exit(EXIT_USAGE);
        }
        done += n > 0 ? (size_t)n : 0;
    }
    free(text);
}
