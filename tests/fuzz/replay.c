/// Hands every file of the folders in argv to a fuzzer's entry point: keeps the corpus in use where
/// there is no libFuzzer.
#include <dirent.h>
#include <string.h>

#include "fuzz.h"

/// More than any file of a corpus has.
enum { FILE_BYTES_MAX = 1 << 20 };

static void replay_file(const char *path) {
    static uint8_t bytes[FILE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    FUZZ_REQUIRE(file != NULL, "cannot read %s", path);
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    fprintf(stderr, "%s\n", path);  // the last one named is the one that failed
    // In memory of its own length, so that a read behind the end is noticed.
    uint8_t *copy = malloc(size > 0 ? size : 1);
    FUZZ_REQUIRE(copy != NULL, "no memory");
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv) {
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        struct dirent **names = NULL;
        const int found = scandir(argv[i], &names, NULL, alphasort);
        for (int k = 0; k < found; k++) {
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], names[k]->d_name);
            if (names[k]->d_name[0] != '.') {
                replay_file(path);
                count++;
            }
            free(names[k]);
        }
        free(names);
    }
    printf("%zu files\n", count);
    return count > 0 ? 0 : 1;  // an empty corpus tests nothing
}
