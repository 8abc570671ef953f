/// Named selections: the shapes of known models, and those that find bugs.
#ifndef MHA_PRESETS_H
#define MHA_PRESETS_H

#include <stddef.h>

/// A block of shapes: the product of its axes, each written as the option of that axis takes it.
struct preset_block {
    const char *batch;
    const char *heads;
    const char *kv_heads;  ///< NULL: as many as heads.
    const char *head_dim;
    const char *seq_q;
    const char *seq_kv;  ///< NULL: as many as queries, value by value.
    const char *ops;     ///< Those that are meant when the user names none; NULL: all.
};

struct preset {
    const char *name;
    const char *summary;  ///< One line for --help.
    const char *masks;    ///< As --mask takes them.
    size_t count;
    const struct preset_block *blocks;  ///< [count]
};

/// Gets a preset by index; NULL behind the last one.
const struct preset *preset_get(size_t index);

/// Finds a preset by name; NULL when there is none.
const struct preset *preset_find(const char *name);

#endif
