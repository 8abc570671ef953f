/// Files of tensors, as other programs write them: .safetensors, and .npy of NumPy. Any bytes are
/// taken or refused with a reason; nothing in a file is believed.
///
/// safetensors: 8 bytes of header length, a JSON header, the data:
/// https://github.com/huggingface/safetensors#format. The data must be covered by the tensors
/// without holes or overlaps. npy: versions 1.0 and 2.0, C order:
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
#ifndef MHA_TENSOR_FILE_H
#define MHA_TENSOR_FILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Room for what is wrong with a file.
enum { TENSOR_ERROR_BYTES = 1024 };

/// Axes that an attention tensor has at most: batch, heads, sequence, head_dim.
enum { TENSOR_RANK_MAX = 4 };

struct tensor_file {
    const char *path;  ///< As the caller gave it.
    int fd;
    uint64_t bytes;
    bool npy;
    json_t *header;       ///< safetensors: the tensors by name.
    uint64_t data_start;  ///< Of all tensors, from the file's start.
    // npy
    char dtype[16];
    size_t rank;
    uint64_t extents[TENSOR_RANK_MAX];
};

/// A tensor's values, all finite.
struct file_tensor {
    size_t rank;
    size_t extents[TENSOR_RANK_MAX];  ///< Each >= 1.
    float *values;                    ///< [product of extents]
};

/// Opens a file and checks all of it but the values. False: `error` has one line, with the path;
/// nothing stays open.
bool tensor_file_open(struct tensor_file *file, const char *path, char error[TENSOR_ERROR_BYTES]);

/// Tells whether there is a tensor of that name; an .npy file's has none.
bool tensor_file_has(const struct tensor_file *file, const char *name);

/// Reads a tensor of f32, f16 or bf16 and converts it; `name` is NULL for that of an .npy file.
/// False: `error` has one line: no such tensor and which there are, another dtype, a value that is
/// not finite and where, no memory.
bool tensor_file_read(const struct tensor_file *file, const char *name, struct file_tensor *tensor,
                      char error[TENSOR_ERROR_BYTES]);

void tensor_file_close(struct tensor_file *file);

void file_tensor_free(struct file_tensor *tensor);

#endif
