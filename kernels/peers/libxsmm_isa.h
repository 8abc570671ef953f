/// What the libxsmm peers share: how they hold the library to the ISA level of their name, and its
/// limits.
///
/// Includers define PEER_ARCHID, the library's id of that level. The id is state of the library;
/// each level's shared object has a library of its own.
#ifndef MHA_LIBXSMM_ISA_H
#define MHA_LIBXSMM_ISA_H

#include <immintrin.h>
#include <libxsmm.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/// Most rows of a block that one generated kernel works on.
enum { LIBXSMM_BLOCK_MAX = 64 };

/// Sets the target of the code generator; false when the CPU cannot run it or the library does not
/// comply. Must precede every dispatch.
static inline bool libxsmm_hold(void) {
    libxsmm_init();
    if (libxsmm_cpuid() < PEER_ARCHID) {
        return false;  // the library would take the id all the same and emit code that faults
    }
    libxsmm_set_target_archid(PEER_ARCHID);
    // The generator goes by the name.
    return libxsmm_get_target_archid() == PEER_ARCHID &&
           strcmp(libxsmm_get_target_arch(), libxsmm_cpuid_name(PEER_ARCHID)) == 0;
}

/// Longest rows, in floats, within reach of generated code, whose offsets over a block are 32-bit
/// immediates.
#define LIBXSMM_REACH (INT_MAX / (LIBXSMM_BLOCK_MAX * sizeof(float)))

static inline bool libxsmm_reaches(size_t n) {
    return n <= LIBXSMM_REACH;
}

#endif
