#include "op.h"

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
