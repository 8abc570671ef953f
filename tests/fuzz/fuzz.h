/// What the fuzzers share: the entry point that libFuzzer and replay.c call, and a reader that
/// turns bytes into choices.
#ifndef MHA_FUZZ_H
#define MHA_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/// Bytes of an input that are still to be used; reads 0 behind the end.
struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t fuzz_byte(struct fuzz_bytes *bytes) {
    if (bytes->left == 0) {
        return 0;
    }
    bytes->left--;
    return *bytes->at++;
}

static inline uint32_t fuzz_word(struct fuzz_bytes *bytes) {
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) {
        word = word << 8 | fuzz_byte(bytes);
    }
    return word;
}

/// Ends the process when something that must hold does not: libFuzzer and replay.c take that for a
/// finding.
#define FUZZ_REQUIRE(condition, ...)                                        \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                   \
            fputc('\n', stderr);                                            \
            abort();                                                        \
        }                                                                   \
    } while (0)

/// A file in memory, and a path that leads to it.
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64]) {
    const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(descriptor >= 0, "no memory file");
    for (size_t done = 0; done < size;) {
        const ssize_t n = write(descriptor, data + done, size - done);
        FUZZ_REQUIRE(n > 0, "a memory file cannot be written");
        done += (size_t)n;
    }
    snprintf(path, 64, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

#endif
