/// Kernels of composed ops: each is a pipeline over kernels of other ops, and stands in the table
/// like any other.
#ifndef MHA_PIPELINE_H
#define MHA_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "library.h"
#include "op.h"

/// Adds the pipelines of every composed op for which a table has kernels: one for each way to
/// compose it and each ISA that brings a kernel of its own. A step gets the first hand-written
/// kernel (or the autovec one) of its op and that ISA, or of the next lower ISA. Each of `with`,
/// "OP=KERNEL", replaces that step in every pipeline whose ISA includes the kernel's. What names no
/// such kernel is described in `error`, and false is returned.
bool pipeline_add(struct kernel_table *table, size_t count, const char *const *with, char *error,
                  size_t error_size);

/// Gets the kernel that does an op's steps in a pipeline; the op is among the pipeline's parts.
const struct mha_kernel *pipeline_part(const struct mha_kernel *pipeline, const char *op);

/// Gets the way in which a pipeline is composed.
const struct op_pipeline *pipeline_form(const struct mha_kernel *pipeline);

/// Tells whether a kernel is a peer, or a pipeline that holds one.
bool pipeline_has_peer(const struct mha_kernel *kernel);

/// Tells whether a kernel takes a problem; for a pipeline, whether the kernels of all steps do.
/// When not, writes the reason.
bool pipeline_supports(const struct mha_kernel *kernel, const struct problem *problem, char *why,
                       size_t why_size);

#endif
