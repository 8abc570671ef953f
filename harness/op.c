#include "op.h"

#include <stdio.h>
#include <string.h>

#include "data.h"
#include "tensors.h"

#define OP_DRIVER(name) extern const struct op_driver op_##name;
#include "op_drivers.inc"
#undef OP_DRIVER

#define OP_DRIVER(name) &op_##name,
static const struct op_driver *const drivers[] = {
#include "op_drivers.inc"
};
#undef OP_DRIVER

enum { OP_COUNT = sizeof(drivers) / sizeof(drivers[0]) };

void op_fill_rows(const struct op_driver *driver, const struct problem *problem,
                  const struct data_class *data, uint64_t seed, size_t shift, size_t index,
                  const struct tensor *tensor, size_t plane, size_t first, size_t rows) {
    if (tensor->shape.given) {
        driver->fill(problem, index, tensor, plane, first, rows);
    } else if (!tensors_fill_rows(driver, problem, tensor, plane, first, rows)) {
        data_fill_rows(data, seed, shift, index, tensor, plane, first, rows);
    }
}

bool op_takes(const struct op_driver *driver, enum element element) {
    const unsigned elements = driver->elements ? driver->elements : 1u << ELEMENT_F32;
    return element < ELEMENT_COUNT && (elements >> element & 1u) != 0;
}

void op_dtypes(char text[32], const struct op_driver *driver) {
    text[0] = '\0';
    for (size_t e = 0; e < ELEMENT_COUNT; e++) {
        if (op_takes(driver, (enum element)e)) {
            const size_t used = strlen(text);
            snprintf(text + used, 32 - used, "%s%s", used > 0 ? ", " : "", element_word(e));
        }
    }
}

double tensor_bytes(const struct tensor_shape *shape) {
    return (double)element_bytes(shape->element) * (double)shape->planes * (double)shape->rows *
           (double)shape->cols;
}

const float *tensor_floats(const struct tensor *t, size_t plane, size_t row, float *scratch) {
    const enum element element = t->shape.element;
    if (element == ELEMENT_F32) {
        return tensor_row(t, plane, row);
    }
    const uint16_t *bits = tensor_at(t, plane, row);
    for (size_t c = 0; c < t->shape.cols; c++) {
        scratch[c] = element_widen(element, bits[c]);
    }
    return scratch;
}

void tensor_store(const struct tensor *t, void *row, size_t col, double value) {
    if (t->shape.element == ELEMENT_F32) {
        ((float *)row)[col] = (float)value;
    } else {
        ((uint16_t *)row)[col] = element_narrow(t->shape.element, value);
    }
}

size_t op_count(void) {
    return OP_COUNT;
}

const struct op_driver *op_get(size_t index) {
    // The generated table is in order of names; the rank'th smallest is what is asked for.
    for (size_t i = 0; i < OP_COUNT; i++) {
        size_t smaller = 0;
        for (size_t j = 0; j < OP_COUNT; j++) {
            smaller += drivers[j]->rank < drivers[i]->rank ||
                       (drivers[j]->rank == drivers[i]->rank && j < i);
        }
        if (smaller == index) {
            return drivers[i];
        }
    }
    return NULL;
}

const struct op_driver *op_find(const char *name) {
    for (size_t i = 0; i < OP_COUNT; i++) {
        if (strcmp(drivers[i]->name, name) == 0) {
            return drivers[i];
        }
    }
    return NULL;
}
