/// The table of this library's kernels, made from variants.inc at configure time.
#include "mha_kernel.h"

#define MHA_ENTRY(name, hash) extern const struct mha_kernel name;
#include "library_entries.inc"
#undef MHA_ENTRY

#define MHA_ENTRY(name, hash) {&name, hash},
static const struct mha_library_entry entries[] = {
#include "library_entries.inc"
};
#undef MHA_ENTRY

static const struct mha_library library = {
    .abi_version = MHA_ABI_VERSION,
    .kernel_bytes = sizeof(struct mha_kernel),
    .name = MHA_LIBRARY_NAME,
    .version = MHA_LIBRARY_VERSION,
    .count = sizeof(entries) / sizeof(entries[0]),
    .entries = entries,
};

const struct mha_library *mha_kernel_library(void) {
    return &library;
}
