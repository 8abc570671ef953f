/// Kernel libraries, loaded into the worker: the built-in one, the peers, and plug-ins.
#ifndef MHA_LIBRARY_H
#define MHA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "mha_kernel.h"

struct loaded_kernel {
    const struct mha_kernel *kernel;
    const char *code_hash;
    const char *library;  ///< The library's own name.
    const char *version;
    const char *plugin;  ///< Path as the user gave it, or NULL for ours and the peers.
};

struct kernel_table {
    size_t count;
    struct loaded_kernel *kernels;
};

/// Loads the built-in library, the peers that the build has, and `plugins`. Peers that cannot be
/// loaded are left out with a note; anything wrong with the built-in library or a plug-in
/// (unreadable, symbol missing, ABI version, duplicate name, nonsense in a descriptor) is described
/// in `error` and false is returned.
bool library_load(struct kernel_table *table, size_t plugins, const char *const *paths, char *error,
                  size_t error_size);

/// The same, and calls `tell` with a plug-in's path before any code of the plug-in runs, and with
/// "" once all are loaded: a library may crash in its constructors.
bool library_load_told(struct kernel_table *table, size_t plugins, const char *const *paths,
                       void (*tell)(const char *path), char *error, size_t error_size);

/// Adds the kernels of one library file to a table, under the same conditions as a plug-in's. Two
/// different files may be loaded side by side, into a table each.
bool library_load_file(struct kernel_table *table, const char *path, char *error,
                       size_t error_size);

/// Finds a kernel by its full name; NULL when there is none.
const struct loaded_kernel *library_find(const struct kernel_table *table, const char *name);

/// Describes what is wrong with a descriptor in `error`; true when nothing is.
bool library_validate(const struct mha_kernel *kernel, char *error, size_t error_size);

/// Writes the folder of the running program, without a final slash.
void library_program_folder(char *folder, size_t size);

#endif
