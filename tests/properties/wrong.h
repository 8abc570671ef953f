/// Kernels that are wrong, each so that one property of attention does not hold: what shows that
/// its test can fail.
#ifndef MHA_WRONG_H
#define MHA_WRONG_H

#include "mha_kernel.h"

extern const struct mha_kernel wrong_kernels[];
extern const size_t wrong_kernel_count;

/// Gets one by name.
const struct mha_kernel *wrong_kernel(const char *name);

#endif
