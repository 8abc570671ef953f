/// What the tests of known cases share: the kernels that run here, and a problem in guarded memory.
#ifndef MHA_STAGE_H
#define MHA_STAGE_H

// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "buffers.h"
#include "library.h"
#include "op.h"
#include "oracle.h"

/// A problem's tensors in memory, inputs zero at first, the output last.
struct stage {
    struct problem problem;
    const struct op_driver *driver;
    size_t count;
    struct buffer buffers[OP_TENSORS_MAX];
    struct tensor tensors[OP_TENSORS_MAX];
    char why[700];  ///< What was wrong with the last run.
};

/// Gets the kernels of the built-in library and the peers, and the pipelines over them.
const struct kernel_table *stage_kernels(void);

/// Gets the `index`'th kernel of an op that runs on this CPU; NULL behind the last one.
const struct mha_kernel *stage_kernel(const char *op, size_t index);

/// Calls `test` with every kernel of the op that runs on this CPU, of which there must be one.
void stage_for_each(const char *op, void (*test)(const struct mha_kernel *kernel));

void stage_make(struct stage *stage, const struct problem *problem, const struct layout *layout);

/// Fills all inputs with a data class.
void stage_fill(struct stage *stage, const char *data_class);

/// Gets element (plane, row, 0) of tensor `index`.
float *stage_row(const struct stage *stage, size_t index, size_t plane, size_t row);

/// Gets the output.
const struct tensor *stage_output(const struct stage *stage);

/// Poisons the output, runs the kernel over all items and checks the canaries. False: the kernel
/// declares that it does not take the shape. Fails the test when something else is wrong.
bool stage_run(struct stage *stage, const struct mha_kernel *kernel);

/// Judges the output by the oracle.
enum verdict stage_judge(struct stage *stage);

/// Runs every kernel of the problem's op over the stage, and expects PASSED of each that takes the
/// shape. Returns how many did.
size_t stage_check_all(struct stage *stage);

void stage_free(struct stage *stage);

#endif
