/// glibc's vector library: its expf, which the C library chooses by the CPU, and by what its
/// tunables leave of it, when it is loaded.
#ifndef MHA_LIBMVEC_H
#define MHA_LIBMVEC_H

#include <gnu/libc-version.h>
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>
#include <sys/platform/x86.h>

// No header declares them: compilers call them by the names of the x86-64 vector function ABI.
#ifdef __AVX512F__
__m512 _ZGVeN16v_expf(__m512 x);
#define LIBMVEC_EXPF _ZGVeN16v_expf
/// What libmvec asks before it takes its AVX-512 code rather than two halves of AVX2.
#define LIBMVEC_CHOSEN() CPU_FEATURE_ACTIVE(AVX512DQ)
#else
__m256 _ZGVdN8v_expf(__m256 x);
#define LIBMVEC_EXPF _ZGVdN8v_expf
/// What libmvec asks before it takes its AVX2 code rather than two halves of SSE4.
#define LIBMVEC_CHOSEN() CPU_FEATURE_ACTIVE(AVX2)
#endif

/// Tells whether libmvec runs the code of this level, and is the one that this was built with; when
/// not, *why (unless `why` is NULL) tells the reason.
static inline bool libmvec_ready(const char **why) {
    const bool same = strcmp(gnu_get_libc_version(), LIBMVEC_VERSION) == 0;
    if (same && LIBMVEC_CHOSEN()) {
        return true;
    }
    if (why) {
        *why = same ? "libmvec runs code of a lesser level: the C library does not see this one"
                    : "the C library is another one than this was built with";
    }
    return false;
}

#endif
