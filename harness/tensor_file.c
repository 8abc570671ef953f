#include "tensor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "element.h"

/// Longest header of a safetensors file: the limit of its reference implementation.
#define HEADER_BYTES_MAX 100000000u

/// Most values of one header: a model has thousands of tensors, and a value takes some fifty bytes
/// of memory.
enum { HEADER_VALUES_MAX = 4 << 20 };

/// Longest header of an .npy file: NumPy writes some hundred bytes, and reads no more than this.
enum { NPY_HEADER_MAX = 10000 };

/// Bytes that are converted at a time.
enum { CHUNK_BYTES = 1 << 16 };

__attribute__((format(printf, 3, 4))) static bool fail(const struct tensor_file *file,
                                                       char error[TENSOR_ERROR_BYTES],
                                                       const char *format, ...) {
    const int used = snprintf(error, TENSOR_ERROR_BYTES, "%.300s: ", file->path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error + used, TENSOR_ERROR_BYTES - (size_t)used, format, arguments);
    va_end(arguments);
    // Names come from the file: control characters could rewrite the terminal.
    for (char *c = error; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) {
            *c = '?';
        }
    }
    return false;
}

/// Reads exactly `bytes` bytes from `offset` on.
static bool read_at(const struct tensor_file *file, void *to, size_t bytes, uint64_t offset) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(file->fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/// Little-endian number of `count` bytes.
static uint64_t number(const unsigned char *bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

/// Multiplies without wrapping; false when the product does not fit.
static bool multiply(uint64_t *product, uint64_t factor) {
    return !__builtin_mul_overflow(*product, factor, product);
}

/// Finds the element type that a dtype of the file's own format names; false when none that is
/// read. The other format's words are unknown here: no size was held against such a shape.
static bool element_of(const struct tensor_file *file, const char *dtype, enum element *element) {
    static const struct {
        const char *safetensors, *npy;
        enum element element;
    } dtypes[] = {
        {"F32", "<f4", ELEMENT_F32}, {"F16", "<f2", ELEMENT_F16}, {"BF16", NULL, ELEMENT_BF16}};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        const char *word = file->npy ? dtypes[i].npy : dtypes[i].safetensors;
        if (word != NULL && strcmp(word, dtype) == 0) {
            *element = dtypes[i].element;
            return true;
        }
    }
    return false;
}

// --- safetensors
// --------------------------------------------------------------------------------------

/// Bits of a dtype's element; 0 for one that is not known.
static unsigned bits_of(const char *dtype) {
    static const struct {
        const char *name;
        unsigned bits;
    } dtypes[] = {{"F32", 32},    {"F16", 16}, {"BF16", 16}, {"F64", 64},
                  {"I64", 64},    {"U64", 64}, {"C64", 64},  {"I32", 32},
                  {"U32", 32},    {"I16", 16}, {"U16", 16},  {"F8_E4M3", 8},
                  {"F8_E5M2", 8}, {"I8", 8},   {"U8", 8},    {"BOOL", 8}};
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        if (strcmp(dtypes[i].name, dtype) == 0) {
            return dtypes[i].bits;
        }
    }
    return 0;
}

/// Reads a whole number that is not negative.
static bool get_number(const json_t *value, uint64_t *out) {
    *out = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

/// Where a tensor's data lies, for the search for holes and overlaps.
struct extent {
    uint64_t begin, end;
    const char *name;
};

static int compare_extents(const void *a, const void *b) {
    const struct extent *x = a, *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return (x->end > y->end) - (x->end < y->end);
}

/// Checks one tensor's description, and tells where its data lies.
static bool check_entry(const struct tensor_file *file, const char *name, const json_t *entry,
                        struct extent *extent, char error[TENSOR_ERROR_BYTES]) {
    const json_t *shape = json_object_get(entry, "shape");
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const uint64_t data = file->bytes - file->data_start;
    extent->name = name;
    if (dtype == NULL || !json_is_array(shape) || json_array_size(offsets) != 2) {
        return fail(file, error, "tensor '%.80s': dtype, shape or data_offsets are missing", name);
    }
    if (!get_number(json_array_get(offsets, 0), &extent->begin) ||
        !get_number(json_array_get(offsets, 1), &extent->end)) {
        return fail(file, error, "tensor '%.80s': its data_offsets are no two whole numbers", name);
    }
    if (extent->begin > extent->end || extent->end > data) {
        return fail(file, error,
                    "tensor '%.80s': its data, [%llu, %llu), lies outside the file, which has "
                    "%llu bytes of data",
                    name, (unsigned long long)extent->begin, (unsigned long long)extent->end,
                    (unsigned long long)data);
    }
    uint64_t bits = bits_of(dtype);
    const bool known = bits > 0;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        uint64_t axis = 0;
        if (!get_number(json_array_get(shape, i), &axis)) {
            return fail(file, error, "tensor '%.80s': its shape holds no whole number at axis %zu",
                        name, i);
        }
        if (known && !multiply(&bits, axis)) {
            return fail(file, error, "tensor '%.80s': its shape is larger than any memory", name);
        }
    }
    if (known && bits / 8 != extent->end - extent->begin) {
        return fail(file, error,
                    "tensor '%.80s': shape and dtype %s make %llu bytes, its data has %llu", name,
                    dtype, (unsigned long long)(bits / 8),
                    (unsigned long long)(extent->end - extent->begin));
    }
    return true;
}

/// Checks every tensor by itself, and that together they cover the data: no byte twice, none not at
/// all.
static bool check_entries(const struct tensor_file *file, char error[TENSOR_ERROR_BYTES]) {
    struct extent *extents = malloc((json_object_size(file->header) + 1) * sizeof(*extents));
    if (extents == NULL) {
        return fail(file, error, "no memory for its header");
    }
    size_t count = 0;
    bool good = true;
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry) {
        good = good && check_entry(file, name, entry, &extents[count++], error);
    }
    if (good) {
        qsort(extents, count, sizeof(*extents), compare_extents);
    }
    uint64_t end = 0;
    for (size_t i = 0; good && i < count; i++) {
        if (extents[i].begin < end) {
            good = fail(file, error, "tensors '%.80s' and '%.80s' overlap at byte %llu of the data",
                        extents[i - 1].name, extents[i].name, (unsigned long long)extents[i].begin);
        } else if (extents[i].begin > end) {
            good = fail(file, error, "bytes [%llu, %llu) of the data belong to no tensor",
                        (unsigned long long)end, (unsigned long long)extents[i].begin);
        }
        end = extents[i].end;
    }
    if (good && end != file->bytes - file->data_start) {
        good = fail(file, error, "bytes [%llu, %llu) of the data belong to no tensor",
                    (unsigned long long)end, (unsigned long long)(file->bytes - file->data_start));
    }
    free(extents);
    return good;
}

static bool open_safetensors(struct tensor_file *file, char error[TENSOR_ERROR_BYTES]) {
    unsigned char lead[8];
    if (file->bytes < sizeof(lead) || !read_at(file, lead, sizeof(lead), 0)) {
        return fail(file, error, "%llu bytes are no .safetensors and no .npy file",
                    (unsigned long long)file->bytes);
    }
    const uint64_t length = number(lead, sizeof(lead));
    if (length > HEADER_BYTES_MAX) {
        return fail(file, error,
                    "no .npy file, and as .safetensors its header would have %llu bytes; at most "
                    "%u are taken",
                    (unsigned long long)length, HEADER_BYTES_MAX);
    }
    if (length > file->bytes - sizeof(lead)) {
        return fail(file, error, "truncated: a header of %llu bytes in a file of %llu",
                    (unsigned long long)length, (unsigned long long)file->bytes);
    }
    file->data_start = sizeof(lead) + length;
    char *text = malloc((size_t)length + 1);
    if (text == NULL || !read_at(file, text, (size_t)length, sizeof(lead))) {
        free(text);
        return fail(file, error, "its header cannot be read");
    }
    size_t values = 1;
    for (size_t i = 0; i < length; i++) {
        values += text[i] == ',';
    }
    json_error_t json_error = {.text = ""};
    if (values <= HEADER_VALUES_MAX) {
        file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &json_error);
    }
    free(text);
    if (values > HEADER_VALUES_MAX) {
        return fail(file, error, "its header holds more than %d values", HEADER_VALUES_MAX);
    }
    if (!json_is_object(file->header)) {
        return fail(file, error, "its header is no JSON object%s%.200s",
                    json_error.text[0] != '\0' ? ": " : "", json_error.text);
    }
    json_object_del(file->header, "__metadata__");  // free text of the file's author
    return check_entries(file, error);
}

// --- npy
// ----------------------------------------------------------------------------------------------

static const unsigned char npy_magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

static void skip_blanks(const char **at) {
    *at += strspn(*at, " \t");
}

/// Takes a character off the front, blanks around it too.
static bool take(const char **at, char c) {
    skip_blanks(at);
    if (**at != c) {
        return false;
    }
    (*at)++;
    skip_blanks(at);
    return true;
}

/// Takes a string of Python, without escapes.
static bool take_string(const char **at, char *text, size_t size) {
    const char quote = **at;
    if (quote != '\'' && quote != '"') {
        return false;
    }
    const char *end = strchr(*at + 1, quote);
    const size_t length = end != NULL ? (size_t)(end - *at) - 1 : size;
    if (length >= size) {
        return false;
    }
    memcpy(text, *at + 1, length);
    text[length] = '\0';
    *at = end + 1;
    return true;
}

static bool take_word(const char **at, const char *word) {
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) {
        return false;
    }
    *at += length;
    return true;
}

/// Takes a tuple of whole numbers. Ranks above the largest are counted, not kept.
static bool take_shape(const char **at, struct tensor_file *file) {
    file->rank = 0;
    if (!take(at, '(')) {
        return false;
    }
    while (!take(at, ')')) {
        uint64_t extent = 0;
        if (**at < '0' || **at > '9') {
            return false;
        }
        for (; **at >= '0' && **at <= '9'; (*at)++) {
            if (!multiply(&extent, 10) ||
                __builtin_add_overflow(extent, (uint64_t)(**at - '0'), &extent)) {
                return false;
            }
        }
        if (file->rank < TENSOR_RANK_MAX) {
            file->extents[file->rank] = extent;
        }
        file->rank++;
        if (!take(at, ',') && **at != ')') {
            return false;
        }
    }
    return true;
}

/// Reads the header: a dictionary of Python with three keys.
static bool parse_npy(struct tensor_file *file, const char *at, char error[TENSOR_ERROR_BYTES]) {
    bool descr = false, order = false, shape = false, fortran = false, good = take(&at, '{');
    while (good && !take(&at, '}')) {
        char key[16];
        good = take_string(&at, key, sizeof(key)) && take(&at, ':');
        if (good && !descr && strcmp(key, "descr") == 0) {
            // A structured dtype is a list: it is no string.
            if (!take_string(&at, file->dtype, sizeof(file->dtype))) {
                return fail(file, error, "its dtype is none that is read: <f4 and <f2 are");
            }
            descr = true;
        } else if (good && !order && strcmp(key, "fortran_order") == 0) {
            fortran = take_word(&at, "True");
            order = good = fortran || take_word(&at, "False");
        } else if (good && !shape && strcmp(key, "shape") == 0) {
            shape = good = take_shape(&at, file);
        } else {
            good = false;
        }
        skip_blanks(&at);
        good = good && (take(&at, ',') || *at == '}');
    }
    if (!good || !descr || !order || !shape || at[strspn(at, " \t\n")] != '\0') {
        return fail(file, error, "its .npy header is not as NumPy writes it");
    }
    return !fortran ||
           fail(file, error, "its axes are in Fortran order; save numpy.ascontiguousarray() of it");
}

static bool open_npy(struct tensor_file *file, char error[TENSOR_ERROR_BYTES]) {
    unsigned char lead[12];
    const size_t version_bytes = 2, least = sizeof(npy_magic) + version_bytes + 2;
    if (file->bytes < sizeof(lead) || !read_at(file, lead, sizeof(lead), 0)) {
        return fail(file, error, "truncated: an .npy file of %llu bytes",
                    (unsigned long long)file->bytes);
    }
    const unsigned major = lead[6], minor = lead[7];
    if ((major != 1 && major != 2) || minor != 0) {
        return fail(file, error, "version %u.%u of the .npy format; 1.0 and 2.0 are read", major,
                    minor);
    }
    const uint64_t start = major == 1 ? least : least + 2;
    const uint64_t length = number(lead + 8, major == 1 ? 2 : 4);
    if (length > file->bytes - start) {
        return fail(file, error, "truncated: a header of %llu bytes in a file of %llu",
                    (unsigned long long)length, (unsigned long long)file->bytes);
    }
    if (length > NPY_HEADER_MAX) {
        return fail(file, error, "its .npy header has %llu bytes; at most %d are taken",
                    (unsigned long long)length, NPY_HEADER_MAX);
    }
    char text[NPY_HEADER_MAX + 1];
    if (!read_at(file, text, (size_t)length, start)) {
        return fail(file, error, "its header cannot be read");
    }
    text[length] = '\0';
    if (strlen(text) != length) {
        return fail(file, error, "its .npy header is not as NumPy writes it");
    }
    file->data_start = start + length;
    if (!parse_npy(file, text, error)) {
        return false;
    }
    enum element element;
    if (!element_of(file, file->dtype, &element)) {
        return fail(file, error, "its dtype is '%s'; <f4 and <f2 are read", file->dtype);
    }
    uint64_t bytes = element_bytes(element);
    bool fits = file->rank <= TENSOR_RANK_MAX;
    for (size_t i = 0; fits && i < file->rank; i++) {
        fits = multiply(&bytes, file->extents[i]);
    }
    if (fits && bytes != file->bytes - file->data_start) {
        return fail(file, error, "shape and dtype make %llu bytes, its data has %llu",
                    (unsigned long long)bytes,
                    (unsigned long long)(file->bytes - file->data_start));
    }
    return fits ||
           fail(file, error, "its shape has more than %d axes, or is larger than any memory",
                TENSOR_RANK_MAX);
}

// --- both
// ---------------------------------------------------------------------------------------------

bool tensor_file_open(struct tensor_file *file, const char *path, char error[TENSOR_ERROR_BYTES]) {
    struct stat status;
    unsigned char lead[sizeof(npy_magic)];
    *file = (struct tensor_file){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file->fd < 0) {
        return fail(file, error, "%s", strerror(errno));
    }
    bool good = fstat(file->fd, &status) == 0 && S_ISREG(status.st_mode);
    if (!good) {
        fail(file, error, "no regular file");
    } else {
        file->bytes = (uint64_t)status.st_size;
        file->npy = file->bytes >= sizeof(lead) && read_at(file, lead, sizeof(lead), 0) &&
                    memcmp(lead, npy_magic, sizeof(lead)) == 0;
        good = file->npy ? open_npy(file, error) : open_safetensors(file, error);
    }
    if (!good) {
        tensor_file_close(file);
    }
    return good;
}

void tensor_file_close(struct tensor_file *file) {
    close(file->fd);
    json_decref(file->header);
    *file = (struct tensor_file){.fd = -1};
}

void file_tensor_free(struct file_tensor *tensor) {
    free(tensor->values);
    *tensor = (struct file_tensor){0};
}

bool tensor_file_has(const struct tensor_file *file, const char *name) {
    return json_object_get(file->header, name) != NULL;
}

/// Says that a name is missing, and which there are, as far as a line holds.
static bool refuse_name(const struct tensor_file *file, const char *name,
                        char error[TENSOR_ERROR_BYTES]) {
    char names[480] = "";
    size_t used = 0, count = 0;
    const char *key;
    json_t *entry;
    json_object_foreach(file->header, key, entry) {
        const size_t length = strlen(key);
        if (used + length + 8 < sizeof(names)) {
            used += (size_t)snprintf(names + used, sizeof(names) - used, "%s'%s'",
                                     used > 0 ? ", " : "", key);
            count++;
        }
    }
    const size_t more = json_object_size(file->header) - count;
    char rest[40] = "";
    if (more > 0) {
        snprintf(rest, sizeof(rest), " and %zu more", more);
    }
    return fail(file, error, "no tensor '%.80s'; it has %s%s", name,
                json_object_size(file->header) > 0 ? names : "none", rest);
}

/// Reads `count` elements of two bytes each and converts them.
static bool read_halves(const struct tensor_file *file, enum element element, float *values,
                        size_t count, uint64_t offset) {
    uint16_t chunk[CHUNK_BYTES / sizeof(uint16_t)] = {0};
    const size_t most = sizeof(chunk) / sizeof(chunk[0]);
    for (size_t done = 0; done < count;) {
        const size_t n = count - done < most ? count - done : most;
        if (!read_at(file, chunk, n * sizeof(chunk[0]), offset + done * sizeof(chunk[0]))) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            values[done + i] = element_widen(element, chunk[i]);
        }
        done += n;
    }
    return true;
}

/// Refuses the first value that is not finite, and says where it is.
static bool check_finite(const struct tensor_file *file, const char *label,
                         const struct file_tensor *tensor, size_t count,
                         char error[TENSOR_ERROR_BYTES]) {
    size_t at = 0;
    while (at < count && isfinite(tensor->values[at])) {
        at++;
    }
    if (at == count) {
        return true;
    }
    const float value = tensor->values[at];
    char place[120] = "";
    size_t block = count;
    for (size_t i = 0; i < tensor->rank; i++) {
        const size_t used = strlen(place);
        block /= tensor->extents[i];
        snprintf(place + used, sizeof(place) - used, "%s%zu", i > 0 ? ", " : "",
                 at / block % tensor->extents[i]);
    }
    return fail(file, error, "%s holds %s at [%s], its first value that is not finite", label,
                isnan(value) ? "NaN"
                : value > 0  ? "infinity"
                             : "-infinity",
                place);
}

bool tensor_file_read(const struct tensor_file *file, const char *name, struct file_tensor *tensor,
                      char error[TENSOR_ERROR_BYTES]) {
    char label[120] = "it";
    const json_t *entry = NULL, *shape = NULL;
    const char *dtype = file->dtype;
    uint64_t offset = file->data_start;
    *tensor = (struct file_tensor){.rank = file->rank};
    if (!file->npy) {
        entry = json_object_get(file->header, name);
        if (entry == NULL) {
            return refuse_name(file, name, error);
        }
        snprintf(label, sizeof(label), "tensor '%.80s'", name);
        dtype = json_string_value(json_object_get(entry, "dtype"));
        shape = json_object_get(entry, "shape");
        tensor->rank = json_array_size(shape);
        offset +=
            (uint64_t)json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    }
    enum element element;
    if (!element_of(file, dtype, &element)) {
        return fail(file, error, "%s is of dtype %.40s; F32, F16 and BF16 are read", label, dtype);
    }
    if (tensor->rank < 2 || tensor->rank > TENSOR_RANK_MAX) {
        return fail(file, error, "%s has %zu axes; queries, keys and values have two to four",
                    label, tensor->rank);
    }
    // The product fits: it was held against the file's length.
    size_t count = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        tensor->extents[i] =
            (size_t)(file->npy ? file->extents[i]
                               : (uint64_t)json_integer_value(json_array_get(shape, i)));
        count *= tensor->extents[i];
    }
    if (count == 0) {
        return fail(file, error, "%s is empty: an axis of length 0", label);
    }
    tensor->values = malloc(count * sizeof(float));
    if (tensor->values == NULL) {
        return fail(file, error, "no memory for %zu values", count);
    }
    const bool read = element == ELEMENT_F32
                          ? read_at(file, tensor->values, count * sizeof(float), offset)
                          : read_halves(file, element, tensor->values, count, offset);
    if (!read) {
        fail(file, error, "%s cannot be read: the file has become shorter", label);
    }
    if (!read || !check_finite(file, label, tensor, count, error)) {
        file_tensor_free(tensor);
        return false;
    }
    return true;
}
