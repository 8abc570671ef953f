/// Data classes: what a tensor is filled with, named for what it provokes.
///
/// Every value depends on the seed and on its logical place only, never on strides or threads: the
/// same problem has the same data in every layout, launch and machine.
#ifndef MHA_DATA_H
#define MHA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"

struct data_class {
    const char *name;
    const char *provokes;  ///< One phrase: which fault it brings out.
    bool special;          ///< Holds NaN or infinities, or makes them: a result need not be finite.
    bool per_lane;  ///< Puts its special value at column (row + shift) % cols: check walks shift.
};

/// Finds a class; every name in a driver's list exists.
const struct data_class *data_class_find(const char *name);

/// Gets the name of one of the classes that a user may ask for; NULL behind the last one.
const char *data_class_word(size_t index);

/// Tells whether an op has a class of this name.
bool data_class_taken(const struct op_driver *driver, const char *name);

/// Gets the class that a problem is timed by.
const struct data_class *data_class_of(const struct op_driver *driver,
                                       const struct problem *problem);

/// Fills the rows [first, first + rows) of input `index` (its place among the op's tensors) of one
/// plane: numbers of the class times the tensor's scale, rounded to the tensor's type, or evenly
/// spread indices whatever the class. op_fill_rows() is for tensors that may be given.
void data_fill_rows(const struct data_class *data, uint64_t seed, size_t shift, size_t index,
                    const struct tensor *tensor, size_t plane, size_t first, size_t rows);

/// A counter-based generator: 64 mixed bits of (seed, index). splitmix64's finaliser.
uint64_t data_mix(uint64_t seed, uint64_t index);

#endif
