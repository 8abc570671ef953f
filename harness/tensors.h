/// A user's own queries, keys and values (--tensors): read from files, and handed to the ops in
/// place of a data class.
#ifndef MHA_TENSORS_H
#define MHA_TENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"
#include "options.h"
#include "tensor_file.h"

enum { TENSORS_Q, TENSORS_K, TENSORS_V, TENSORS_COUNT };

/// Where the values come from; all strings are borrowed.
struct tensor_source {
    const struct string_list *files;  ///< One .safetensors, or the .npy of q, k and perhaps v.
    const struct string_list *names;  ///< "q=NAME", ...: of a .safetensors; empty: q, k, v.
    const char *layout;               ///< "bhsd" or "bshd"; NULL: bhsd.
};

/// One of q, k and v. Element (b, h, s, d) is at values[b * batch_stride + h * head_stride + s *
/// seq_stride + d].
struct tensor_values {
    struct file_tensor file;  ///< values: NULL when it was not given, or is dropped.
    bool given;
    size_t batch, heads, seq, head_dim;
    size_t batch_stride, head_stride, seq_stride;
};

struct tensor_set {
    struct tensor_values tensors[TENSORS_COUNT];
    struct mha_shape shape;
    char hash[17];  ///< Of shapes and values, whatever their file and layout.
};

/// Reads q, k and, where there is one, v, and checks that they belong together. False: `error` has
/// one line.
bool tensors_load(struct tensor_set *set, const struct tensor_source *source,
                  char error[TENSOR_ERROR_BYTES]);

/// Frees the values; what is known of them stays.
void tensors_drop(struct tensor_set *set);

/// A copy of options whose selection is that of the tensors.
struct tensor_options {
    struct options own;
    struct tensor_set set;
};

/// Makes `prepared->own`: the options as they are without --tensors; with it, the shape of what it
/// names, which is read for that and checked, and only the ops that take it: with a note of those
/// that are left out. Prints one line and returns EXIT_USAGE when that fails or leaves no op.
/// `options` outlives the copy. tensors_options_free() is right after every outcome.
int tensors_options(const struct options *options, struct tensor_options *prepared);

void tensors_options_free(struct tensor_options *prepared);

/// Makes what a job and a result's context tell of the tensors: files, names, layout and hash; null
/// without --tensors.
json_t *tensors_to_json(const struct options *options);

/// Writes the options that name exactly this problem: as problem_options() does, or with --tensors
/// in place of the shape.
void tensors_problem_options(char *text, size_t size, const struct options *options,
                             const struct problem *problem);

/// The worker's side: reads what tensors_to_json() tells and hands it to tensors_fill_rows().
/// False, with one line in `error`, when that fails or the data is not what it was.
bool tensors_install(const json_t *json, char error[TENSOR_ERROR_BYTES]);

/// Tells whether an op's inputs come from tensors that are installed.
bool tensors_take(const struct op_driver *driver);

/// Fills rows [first, first + rows) of one plane of an op's input from the installed tensors: q, k
/// and v themselves; the scores that they make, computed in double and rounded once, where an op
/// takes scores; and the softmax of these, under the problem's mask, where it takes weights. False:
/// nothing is installed, or not for this input.
bool tensors_fill_rows(const struct op_driver *driver, const struct problem *problem,
                       const struct tensor *tensor, size_t plane, size_t first, size_t rows);

#endif
