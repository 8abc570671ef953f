/// The readers of tensor files: what is taken has the values and shapes that were written, and
/// every kind of malformed file is refused for its own reason.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data.h"
#include "op.h"
#include "tensor_file.h"
#include "tensors.h"

/// A file in memory, and a path that leads to it.
struct file {
    int fd;
    char path[40];
};

static struct file file_of(const void *bytes, size_t count) {
    struct file file = {.fd = memfd_create("tensors", MFD_CLOEXEC)};
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, bytes, count), (ssize_t)count);
    snprintf(file.path, sizeof(file.path), "/proc/self/fd/%d", file.fd);
    return file;
}

/// A safetensors file of a header and `data_bytes` bytes of data, zeros unless given.
static struct file safetensors_of(const char *header, const void *data, size_t data_bytes) {
    const size_t length = strlen(header);
    unsigned char *bytes = calloc(8 + length + data_bytes, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(length >> (8 * i) & 0xff);
    }
    memcpy(bytes + 8, header, length);
    if (data != NULL) {
        memcpy(bytes + 8 + length, data, data_bytes);
    }
    const struct file file = file_of(bytes, 8 + length + data_bytes);
    free(bytes);
    return file;
}

static struct file npy_of(unsigned char major, const char *header, const void *data,
                          size_t data_bytes) {
    const size_t length = strlen(header), lead = major == 1 ? 10 : 12;
    unsigned char *bytes = calloc(lead + length + data_bytes, 1);
    assert_non_null(bytes);
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = major;
    for (size_t i = 8; i < lead; i++) {
        bytes[i] = (unsigned char)(length >> (8 * (i - 8)) & 0xff);
    }
    memcpy(bytes + lead, header, length);
    if (data != NULL) {
        memcpy(bytes + lead + length, data, data_bytes);
    }
    const struct file file = file_of(bytes, lead + length + data_bytes);
    free(bytes);
    return file;
}

/// Opens a file and reads a tensor; the error when one of both is refused, else "".
static void read_tensor(const struct file *file, const char *name, struct file_tensor *tensor,
                        char error[TENSOR_ERROR_BYTES]) {
    struct tensor_file opened;
    error[0] = '\0';
    *tensor = (struct file_tensor){0};
    if (tensor_file_open(&opened, file->path, error)) {
        if (tensor_file_read(&opened, name, tensor, error)) {
            error[0] = '\0';
        }
        tensor_file_close(&opened);
    }
}

static void assert_refused(struct file file, const char *name, const char *what, const char *part) {
    struct file_tensor tensor;
    char error[TENSOR_ERROR_BYTES];
    read_tensor(&file, name, &tensor, error);
    if (strstr(error, part) == NULL || strchr(error, '\n') != NULL ||
        strstr(error, "/proc/self/fd/") != error) {
        fail_msg("%s: '%s' is not in: %s", what, part, error);
    }
    assert_null(tensor.values);
    close(file.fd);
}

#define Q_2X2 "\"q\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}"

static void test_safetensors_values(void **state) {
    (void)state;
    const float values[] = {1.5f, -2.0f, 0x1p-149f, 3.25f};
    struct file file =
        safetensors_of("{\"__metadata__\":{\"a\":\"b\"}," Q_2X2 "}  ", values, sizeof(values));
    struct file_tensor tensor;
    char error[TENSOR_ERROR_BYTES];
    read_tensor(&file, "q", &tensor, error);
    assert_string_equal(error, "");
    assert_int_equal(tensor.rank, 2);
    assert_int_equal(tensor.extents[0], 2);
    assert_memory_equal(tensor.values, values, sizeof(values));
    file_tensor_free(&tensor);
    close(file.fd);
}

static void test_halves(void **state) {
    (void)state;
    // IEEE binary16: 1, -2, the smallest denormal, the largest denormal, the smallest normal,
    // 65504.
    const uint16_t halves[] = {0x3c00, 0xc000, 0x0001, 0x03ff, 0x0400, 0x7bff};
    const float f16[] = {1.0f, -2.0f, 0x1p-24f, 0x1.ff8p-15f, 0x1p-14f, 65504.0f};
    const char header[] = "{\"q\":{\"dtype\":\"F16\",\"shape\":[3,2],\"data_offsets\":[0,12]}}";
    struct file file = safetensors_of(header, halves, sizeof(halves));
    struct file_tensor tensor;
    char error[TENSOR_ERROR_BYTES];
    read_tensor(&file, "q", &tensor, error);
    assert_string_equal(error, "");
    assert_memory_equal(tensor.values, f16, sizeof(f16));
    file_tensor_free(&tensor);
    close(file.fd);

    file = npy_of(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 2), }\n", halves,
                  sizeof(halves));
    read_tensor(&file, NULL, &tensor, error);
    assert_string_equal(error, "");
    assert_memory_equal(tensor.values, f16, sizeof(f16));
    file_tensor_free(&tensor);
    close(file.fd);

    const uint16_t uppers[] = {0x3f80, 0xc000, 0x0001, 0x7f7f};
    const float bf16[] = {1.0f, -2.0f, 0x1p-133f, 0x1.fep127f};
    file = safetensors_of("{\"q\":{\"dtype\":\"BF16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}",
                          uppers, sizeof(uppers));
    read_tensor(&file, "q", &tensor, error);
    assert_string_equal(error, "");
    assert_memory_equal(tensor.values, bf16, sizeof(bf16));
    file_tensor_free(&tensor);
    close(file.fd);
}

/// More halves than are converted at a time.
static void test_many_halves(void **state) {
    (void)state;
    enum { ROWS = 700, COLS = 101 };
    static uint16_t halves[ROWS * COLS];
    for (size_t i = 0; i < ROWS * COLS; i++) {
        halves[i] = (uint16_t)(0x3c00 + i % 1024);
    }
    struct file file = npy_of(2, "{'shape': (700, 101), 'fortran_order': False, 'descr': \"<f2\"}",
                              halves, sizeof(halves));
    struct file_tensor tensor;
    char error[TENSOR_ERROR_BYTES];
    read_tensor(&file, NULL, &tensor, error);
    assert_string_equal(error, "");
    for (size_t i = 0; i < ROWS * COLS; i++) {
        assert_true((double)tensor.values[i] == 1.0 + (double)(i % 1024) / 1024.0);
    }
    file_tensor_free(&tensor);
    close(file.fd);
}

static void test_malformed_safetensors(void **state) {
    (void)state;
    static const struct {
        const char *what, *header, *part;
        size_t data;
    } cases[] = {
        {"no JSON", "{\"q\"", "no JSON object", 16},
        {"no object", "[1, 2]", "no JSON object", 0},
        {"a name twice", "{" Q_2X2 "," Q_2X2 "}", "no JSON object: duplicate", 16},
        {"no dtype", "{\"q\":{\"shape\":[2,2],\"data_offsets\":[0,16]}}", "are missing", 16},
        {"no tensor", "{\"q\":7}", "are missing", 0},
        {"three offsets", "{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}",
         "are missing", 4},
        {"negative offset", "{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}",
         "no two whole numbers", 4},
        {"fractional offset", "{\"q\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]}}",
         "no two whole numbers", 4},
        {"offsets behind the file", "{" Q_2X2 "}", "lies outside the file", 12},
        {"offsets reversed", "{\"q\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,0]}}",
         "lies outside the file", 4},
        {"wrong product", "{\"q\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,16]}}",
         "make 24 bytes, its data has 16", 16},
        {"wrong size of another dtype",
         "{" Q_2X2 ",\"x\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[16,20]}}",
         "make 8 bytes, its data has 4", 20},
        {"negative axis", "{\"q\":{\"dtype\":\"F32\",\"shape\":[-2,-2],\"data_offsets\":[0,16]}}",
         "no whole number at axis 0", 16},
        {"a product that wraps",
         "{\"q\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,2],\"data_offsets\":[0,0]}}",
         "larger than any memory", 0},
        {"overlap",
         "{" Q_2X2 ",\"k\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[12,28]}}",
         "overlap at byte 12", 28},
        {"hole", "{" Q_2X2 ",\"k\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[20,24]}}",
         "[16, 20) of the data belong to no tensor", 24},
        {"hole in front", "{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[4,8]}}",
         "[0, 4) of the data belong to no tensor", 8},
        {"rest", "{" Q_2X2 "}", "[16, 17) of the data belong to no tensor", 17},
        {"another dtype", "{\"q\":{\"dtype\":\"F64\",\"shape\":[1,2],\"data_offsets\":[0,16]}}",
         "of dtype F64; F32, F16 and BF16 are read", 16},
        {"an unknown dtype", "{\"q\":{\"dtype\":\"F4\",\"shape\":[1,2],\"data_offsets\":[0,16]}}",
         "of dtype F4;", 16},
        // No size was held against the shape: it must not be allocated.
        {"NumPy's dtype",
         "{\"q\":{\"dtype\":\"<f2\",\"shape\":[4294967296,4294967295,2],\"data_offsets\":[0,0]}}",
         "of dtype <f2; F32, F16 and BF16 are read", 0},
        {"NumPy's dtype and another size",
         "{\"q\":{\"dtype\":\"<f4\",\"shape\":[2,2],\"data_offsets\":[0,4]}}",
         "of dtype <f4; F32, F16 and BF16 are read", 4},
        {"one axis", "{\"q\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
         "has 1 axes", 16},
        {"five axes", "{\"q\":{\"dtype\":\"F32\",\"shape\":[1,1,1,2,2],\"data_offsets\":[0,16]}}",
         "has 5 axes", 16},
        {"empty", "{\"q\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[0,0]}}", "is empty",
         0},
        {"another name", "{\"a\\u001bb\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
         "no tensor 'q'; it has 'a?b'", 4},
        {"no names", "{}", "no tensor 'q'; it has none", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_refused(safetensors_of(cases[i].header, NULL, cases[i].data), "q", cases[i].what,
                       cases[i].part);
    }
    const unsigned char huge[16] = {1, 0xe1, 0xf5, 0x05};  // 100,000,001
    assert_refused(file_of(huge, sizeof(huge)), "q", "a huge header", "100000001 bytes");
    const unsigned char wild[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, '{', '}'};
    assert_refused(file_of(wild, sizeof(wild)), "q", "a wild header", "at most 100000000");
    const unsigned char cut[16] = {100, 0, 0, 0, 0, 0, 0, 0, '{'};
    assert_refused(file_of(cut, sizeof(cut)), "q", "a cut header", "truncated");
    assert_refused(file_of("", 0), "q", "nothing", "0 bytes are no");
    assert_refused(file_of("1234567", 7), "q", "seven bytes", "7 bytes are no");
}

static void test_names_are_listed(void **state) {
    (void)state;
    // More than a line holds: a part of them, and how many there are beside.
    enum { TENSORS = 100 };
    static char header[TENSORS * 120];
    size_t used = 0;
    for (size_t i = 0; i < TENSORS; i++) {
        used += (size_t)snprintf(header + used, sizeof(header) - used,
                                 "%s\"model.layers.%zu.q\":{\"dtype\":\"F32\",\"shape\":[1],"
                                 "\"data_offsets\":[%zu,%zu]}",
                                 i == 0 ? "{" : ",", i, 4 * i, 4 * i + 4);
    }
    snprintf(header + used, sizeof(header) - used, "}");
    assert_refused(safetensors_of(header, NULL, sizeof(float) * TENSORS), "q", "many names",
                   "'model.layers.0.q', 'model.layers.1.q'");
    assert_refused(safetensors_of(header, NULL, sizeof(float) * TENSORS), "q", "many names",
                   " more");
}

static void test_dense_header(void **state) {
    (void)state;
    // Values take many times their text's memory: a header of nothing else is refused unread.
    const size_t values = (size_t)5 << 20;
    char *header = malloc(2 * values + 8);
    assert_non_null(header);
    size_t used = (size_t)sprintf(header, "{\"q\":[");
    for (size_t i = 0; i < values; i++) {
        header[used++] = '0';
        header[used++] = i + 1 < values ? ',' : ']';
    }
    header[used] = '\0';
    assert_refused(safetensors_of(header, NULL, 0), "q", "a dense header", "holds more than");
    free(header);
}

static void test_not_finite(void **state) {
    (void)state;
    static const struct {
        float value;
        const char *part;
    } cases[] = {{NAN, "'q' holds NaN at [1, 0]"},
                 {INFINITY, "'q' holds infinity at [1, 0]"},
                 {-INFINITY, "'q' holds -infinity at [1, 0]"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const float values[] = {1.0f, 2.0f, cases[i].value, NAN};
        assert_refused(safetensors_of("{" Q_2X2 "}", values, sizeof(values)), "q", "not finite",
                       cases[i].part);
    }
    const uint16_t halves[] = {0x3c00, 0x7c00};
    assert_refused(npy_of(1, "{'descr': '<f2', 'fortran_order': False, 'shape': (1, 2), }", halves,
                          sizeof(halves)),
                   NULL, "infinite half", "it holds infinity at [0, 1]");
}

static void test_malformed_npy(void **state) {
    (void)state;
    static const struct {
        const char *what, *header, *part;
        size_t data;
    } cases[] = {
        {"wrong dtype", "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }",
         "dtype is '<f8'", 16},
        {"big-endian", "{'descr': '>f4', 'fortran_order': False, 'shape': (1, 2), }",
         "dtype is '>f4'", 8},
        {"structured", "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 2), }",
         "its dtype is none that is read", 8},
        {"Fortran order", "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }",
         "Fortran order", 8},
        {"too short", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
         "make 8 bytes, its data has 7", 7},
        {"too long", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }",
         "make 8 bytes, its data has 9", 9},
        {"no shape", "{'descr': '<f4', 'fortran_order': False}", "not as NumPy writes it", 8},
        {"a key twice", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}",
         "not as NumPy writes it", 8},
        {"another key", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'x': 1}",
         "not as NumPy writes it", 8},
        {"negative axis", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }",
         "not as NumPy writes it", 8},
        {"an axis that wraps",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617, 2), }",
         "not as NumPy writes it", 8},
        {"a product that wraps",
         "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
         "larger than any memory", 0},
        {"something behind", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), } x",
         "not as NumPy writes it", 8},
        {"cut", "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2", "not as NumPy writes it",
         8},
        {"no dictionary", "", "not as NumPy writes it", 8},
        {"one axis", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "has 1 axes", 8},
        {"no axis", "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "has 0 axes", 4},
        {"five axes", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,2), }",
         "more than 4 axes", 8},
        {"empty", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2), }", "is empty", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned char major = 1; major <= 2; major++) {
            assert_refused(npy_of(major, cases[i].header, NULL, cases[i].data), NULL, cases[i].what,
                           cases[i].part);
        }
    }
    assert_refused(
        npy_of(3, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", NULL, 8), NULL,
        "version 3", "version 3.0");
    assert_refused(file_of("\x93NUMPY\x01\x00", 8), NULL, "eight bytes", "truncated");
    assert_refused(file_of("\x93NUMPY\x01\x00\xff\x00{}", 12), NULL, "a cut header", "truncated");
    assert_refused(file_of("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14), NULL, "a wild header",
                   "truncated");
    char *blanks = malloc(20001);
    assert_non_null(blanks);
    memset(blanks, ' ', 20000);
    blanks[20000] = '\0';
    assert_refused(npy_of(1, blanks, NULL, 0), NULL, "a long header", "at most 10000");
    free(blanks);
}

// --- q, k and v together
// ------------------------------------------------------------------------------

static void words(struct string_list *list, const char *const *items) {
    for (; *items != NULL; items++) {
        string_list_add(list, *items, strlen(*items));
    }
}

/// An .npy file whose element i is (i + first) / 8.
static struct file counted(const char *shape, size_t count, size_t first) {
    char header[200];
    snprintf(header, sizeof(header), "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }",
             shape);
    float *values = calloc(count, sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)(i + first) / 8.0f;
    }
    const struct file file = npy_of(1, header, values, count * sizeof(*values));
    free(values);
    return file;
}

static bool load(struct tensor_set *set, const struct file *q, const struct file *k,
                 const struct file *v, const char *layout, char error[TENSOR_ERROR_BYTES]) {
    struct string_list files = {0}, names = {0};
    const char *const paths[] = {q->path, k->path, v != NULL ? v->path : NULL, NULL};
    words(&files, paths);
    const struct tensor_source source = {&files, &names, layout};
    const bool good = tensors_load(set, &source, error);
    string_list_free(&files);
    return good;
}

static void test_layouts(void **state) {
    (void)state;
    static const struct {
        const char *layout, *q, *k;
        struct mha_shape shape;
        size_t head_stride, seq_stride;
    } cases[] = {
        {NULL, "2, 4, 3, 5", "2, 2, 6, 5", {2, 4, 2, 3, 6, 5}, 15, 5},
        {"bhsd", "2, 4, 3, 5", "2, 2, 6, 5", {2, 4, 2, 3, 6, 5}, 15, 5},
        {"bshd", "2, 3, 4, 5", "2, 6, 2, 5", {2, 4, 2, 3, 6, 5}, 5, 20},
        {"bhsd", "4, 6, 5", "2, 12, 5", {1, 4, 2, 6, 12, 5}, 30, 5},
        {"bshd", "6, 4, 5", "12, 2, 5", {1, 4, 2, 6, 12, 5}, 5, 20},
        {"bhsd", "24, 5", "24, 5", {1, 1, 1, 24, 24, 5}, 120, 5},
        {"bshd", "24, 5", "24, 5", {1, 1, 1, 24, 24, 5}, 5, 5},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tensor_set set;
        char error[TENSOR_ERROR_BYTES] = "";
        size_t counts[2] = {1, 1};
        for (size_t c = 0; c < 2; c++) {
            for (const char *at = c == 0 ? cases[i].q : cases[i].k; at != NULL;
                 at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
                counts[c] *= strtoul(at, NULL, 10);
            }
        }
        struct file q = counted(cases[i].q, counts[0], 0), k = counted(cases[i].k, counts[1], 7);
        assert_true(load(&set, &q, &k, NULL, cases[i].layout, error));
        assert_memory_equal(&set.shape, &cases[i].shape, sizeof(set.shape));
        assert_int_equal(set.tensors[TENSORS_Q].head_stride, cases[i].head_stride);
        assert_int_equal(set.tensors[TENSORS_Q].seq_stride, cases[i].seq_stride);
        assert_false(set.tensors[TENSORS_V].given);
        tensors_drop(&set);
        close(q.fd);
        close(k.fd);
    }
}

static void test_shapes_that_do_not_fit(void **state) {
    (void)state;
    static const struct {
        const char *q, *k, *v, *part;
    } cases[] = {
        {"1, 2, 3, 4", "2, 2, 3, 2", NULL, "batch of q is 1, of k 2"},
        {"1, 2, 3, 4", "1, 2, 4, 3", NULL, "head_dim of q is 4, of k 3"},
        {"1, 3, 2, 4", "1, 2, 3, 4", NULL, "q has 3 heads, k 2"},
        {"1, 2, 3, 4", "1, 2, 3, 4", "1, 1, 6, 4", "heads of k is 2, of v 1"},
        {"1, 2, 3, 4", "1, 2, 3, 4", "1, 2, 4, 3", "seq of k is 3, of v 4"},
        {"1, 2, 3, 4", "1, 2, 3, 4", "2, 1, 3, 4", "batch of k is 1, of v 2"},
        {"1, 2, 3, 4", "1, 2, 3, 4", "1, 2, 3, 4, 1", "more than 4 axes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tensor_set set;
        char error[TENSOR_ERROR_BYTES] = "";
        struct file q = counted(cases[i].q, 24, 0), k = counted(cases[i].k, 24, 0);
        struct file v = counted(cases[i].v != NULL ? cases[i].v : "1", 24, 0);
        assert_false(load(&set, &q, &k, cases[i].v != NULL ? &v : NULL, "bhsd", error));
        if (strstr(error, cases[i].part) == NULL) {
            fail_msg("'%s' is not in: %s", cases[i].part, error);
        }
        close(q.fd);
        close(k.fd);
        close(v.fd);
    }
}

/// The hash is of the values where they belong, whatever the layout of the file.
static void test_hash(void **state) {
    (void)state;
    struct tensor_set a, b, c;
    char error[TENSOR_ERROR_BYTES] = "";
    struct file hsd = counted("1, 1, 6, 4", 24, 0), shd = counted("1, 6, 1, 4", 24, 0);
    struct file other = counted("1, 1, 6, 4", 24, 1);
    assert_true(load(&a, &hsd, &hsd, NULL, "bhsd", error));
    assert_true(load(&b, &shd, &shd, NULL, "bshd", error));
    assert_true(load(&c, &hsd, &other, NULL, "bhsd", error));
    assert_string_equal(a.hash, b.hash);
    assert_string_not_equal(a.hash, c.hash);
    tensors_drop(&a);
    tensors_drop(&b);
    tensors_drop(&c);
    close(hsd.fd);
    close(shd.fd);
    close(other.fd);
}

/// Fills all of one input of an op, as check does.
static float *filled(const struct problem *problem, size_t index) {
    const struct op_driver *driver = op_find(problem->op);
    struct tensor_shape shapes[OP_TENSORS_MAX];
    driver->tensors(problem, shapes);
    const struct tensor_shape *s = &shapes[index];
    float *values = calloc(s->planes * s->rows * s->cols, sizeof(*values));
    assert_non_null(values);
    const struct tensor tensor = {*s, values, s->cols, s->rows * s->cols};
    for (size_t p = 0; p < s->planes; p++) {
        op_fill_rows(driver, problem, data_class_find("tensors"), 1, 0, index, &tensor, p, 0,
                     s->rows);
    }
    return values;
}

/// What reaches the ops: the very values of q, k and v, and scores and weights that follow from
/// them. Last, since it installs the tensors for the rest of the process.
static void test_filling(void **state) {
    (void)state;
    enum { BATCH = 2, HEADS = 4, KV_HEADS = 2, SEQ_Q = 3, SEQ_KV = 5, DIM = 6 };
    struct file q = counted("2, 3, 4, 6", BATCH * SEQ_Q * HEADS * DIM, 0);
    struct file k = counted("2, 5, 2, 6", BATCH * SEQ_KV * KV_HEADS * DIM, 3);
    struct file v = counted("2, 5, 2, 6", BATCH * SEQ_KV * KV_HEADS * DIM, 50);
    struct tensor_set set;
    char error[TENSOR_ERROR_BYTES] = "";
    assert_true(load(&set, &q, &k, &v, "bshd", error));
    struct problem problem = {
        .op = "qk", .dtype = "f32", .shape = {BATCH, HEADS, KV_HEADS, SEQ_Q, SEQ_KV, DIM}};
    assert_false(tensors_take(op_find("qk")));  // not installed yet
    json_t *job = json_pack("{s:[s, s, s], s:[], s:s, s:s}", "files", q.path, k.path, v.path,
                            "names", "layout", "bshd", "hash", "0123456789abcdef");
    assert_false(tensors_install(job, error));
    assert_non_null(strstr(error, "has changed"));
    json_object_set_new(job, "hash", json_string(set.hash));
    assert_true(tensors_install(job, error));
    json_decref(job);
    assert_true(tensors_take(op_find("qk")));
    assert_true(tensors_take(op_find("pv")));
    assert_false(tensors_take(op_find("concat")));

    float *got_q = filled(&problem, 0), *got_k = filled(&problem, 1);
    problem.mask = MHA_MASK_CAUSAL;
    problem.op = "softmax";
    float *got_x = filled(&problem, 0);
    problem.op = "pv";
    float *got_p = filled(&problem, 0), *got_v = filled(&problem, 1);
    for (size_t b = 0; b < BATCH; b++) {
        for (size_t h = 0; h < HEADS; h++) {
            for (size_t r = 0; r < SEQ_Q; r++) {
                const float *q_row = &got_q[((b * HEADS + h) * SEQ_Q + r) * DIM];
                double scores[SEQ_KV], sum = 0;
                for (size_t j = 0; j < SEQ_KV; j++) {
                    const size_t kv_head = b * KV_HEADS + h / (HEADS / KV_HEADS);
                    const float *k_row = &got_k[(kv_head * SEQ_KV + j) * DIM];
                    scores[j] = 0;
                    for (size_t d = 0; d < DIM; d++) {
                        scores[j] += (double)q_row[d] * (double)k_row[d] / sqrt((double)DIM);
                        // The values of the files, where [batch, sequence, head, dim] has them.
                        assert_true(q_row[d] ==
                                    (float)(((b * SEQ_Q + r) * HEADS + h) * DIM + d) / 8.0f);
                        const size_t at =
                            ((b * SEQ_KV + j) * KV_HEADS + h / (HEADS / KV_HEADS)) * DIM + d;
                        assert_true(k_row[d] == (float)(at + 3) / 8.0f);
                        assert_true(got_v[(kv_head * SEQ_KV + j) * DIM + d] ==
                                    (float)(at + 50) / 8.0f);
                    }
                    // One rounding to float, and those of the sum in double.
                    const double x = (double)got_x[((b * HEADS + h) * SEQ_Q + r) * SEQ_KV + j];
                    assert_true(fabs(x - scores[j]) <= 0x1p-24 * (1 + 0x1p-20) * fabs(scores[j]));
                    sum += j < SEQ_KV - SEQ_Q + r + 1 ? exp(scores[j]) : 0;
                }
                for (size_t j = 0; j < SEQ_KV; j++) {
                    const double p = (double)got_p[((b * HEADS + h) * SEQ_Q + r) * SEQ_KV + j];
                    const double want = j < SEQ_KV - SEQ_Q + r + 1 ? exp(scores[j]) / sum : 0;
                    assert_true(fabs(p - want) <= 0x1p-20 * want + 0x1p-126);
                }
            }
        }
    }
    free(got_q);
    free(got_k);
    free(got_x);
    free(got_p);
    free(got_v);
    tensors_drop(&set);
    close(q.fd);
    close(k.fd);
    close(v.fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors_values),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_many_halves),
        cmocka_unit_test(test_malformed_safetensors),
        cmocka_unit_test(test_names_are_listed),
        cmocka_unit_test(test_dense_header),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_malformed_npy),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_filling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
