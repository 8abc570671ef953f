/// The readers of tensor files: any bytes must be taken or refused with one line. What is taken has
/// finite values only, as many as its shape says, and fits into the file.
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "tensor_file.h"
#include "tensors.h"

static void check_error(const char *error, const char *path) {
    FUZZ_REQUIRE(strncmp(error, path, strlen(path)) == 0 && strlen(error) > strlen(path) + 2,
                 "no reason: %s", error);
    for (const char *c = error; *c != '\0'; c++) {
        FUZZ_REQUIRE((unsigned char)*c >= ' ' && *c != 0x7f, "a control character in the reason");
    }
}

static void check_tensor(const struct tensor_file *file, const char *name) {
    char error[TENSOR_ERROR_BYTES];
    struct file_tensor tensor;
    if (!tensor_file_read(file, name, &tensor, error)) {
        FUZZ_REQUIRE(tensor.values == NULL, "values of a tensor that was refused");
        check_error(error, file->path);
        return;
    }
    size_t count = 1;
    for (size_t i = 0; i < tensor.rank; i++) {
        count *= tensor.extents[i];
    }
    FUZZ_REQUIRE(tensor.rank >= 2 && tensor.rank <= TENSOR_RANK_MAX, "%zu axes", tensor.rank);
    FUZZ_REQUIRE(count > 0 && 2 * count <= file->bytes, "%zu values", count);
    for (size_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(isfinite(tensor.values[i]), "value %zu is not finite", i);
    }
    file_tensor_free(&tensor);
}

/// Reads the file as q, k and v at once.
static void check_set(char *path, char **names, size_t count, const char *layout) {
    const struct string_list files = {1, &path}, list = {count, names};
    const struct tensor_source source = {&files, &list, layout};
    struct tensor_set set;
    char error[TENSOR_ERROR_BYTES] = "";
    if (!tensors_load(&set, &source, error)) {
        FUZZ_REQUIRE(error[0] != '\0' && set.tensors[0].file.values == NULL, "half refused");
        return;
    }
    const struct mha_shape *s = &set.shape;
    FUZZ_REQUIRE(s->batch >= 1 && s->heads >= 1 && s->kv_heads >= 1 && s->head_dim >= 1 &&
                     s->seq_q >= 1 && s->seq_kv >= 1 && s->heads % s->kv_heads == 0,
                 "an impossible shape");
    FUZZ_REQUIRE(strlen(set.hash) == 16, "hash %s", set.hash);
    tensors_drop(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[40], error[TENSOR_ERROR_BYTES];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size, "no memory file");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct tensor_file file;
    if (!tensor_file_open(&file, path, error)) {
        check_error(error, path);
    } else {
        if (file.npy) {
            check_tensor(&file, NULL);
        }
        const char *name;
        json_t *entry;
        json_object_foreach(file.header, name, entry) {
            check_tensor(&file, name);
        }
        tensor_file_close(&file);
        static char q[] = "q=q", k[] = "k=q", v[] = "v=q";
        static char *same[] = {q, k, v};
        check_set(path, same, 3, "bhsd");
        check_set(path, NULL, 0, "bshd");
    }
    close(fd);
    return 0;
}
