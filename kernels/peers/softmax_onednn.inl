/// softmax by oneDNN's softmax primitive.
///
/// Algorithm: the library's code takes dense rows only, anything else goes to its reference. Where
/// an item's rows are dense and see every key, they are one primitive. Otherwise groups of GROUP
/// rows are copied to dense ones as long as the longest of them, with -inf where a key is not seen.
///
/// Special values: the library does not turn rows of -inf into zeros; they are looked for before. A
/// NaN or +inf stays a NaN where it is and leaves zeros in the rest of its row. All of them raise
/// the processor's invalid flag, which nothing else does here: only then rows are looked through.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "mha_kernel.h"
#include "onednn.h"
#include "peer_name.h"

/// Rows of a group: a call costs about as much as 16 rows of a few dozen elements, and a row's
/// share of what others see and it does not is half of that.
enum { GROUP = 16 };

static bool all_unseen(const float *x, size_t n) {
    size_t i = 0;
    while (i < n && x[i] == -INFINITY) {
        i++;
    }
    return i == n;
}

static void fill_unseen(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = -INFINITY;
    }
}

/// Calls the library and tells whether an operation was invalid.
static bool raises_invalid(const void *state, const struct onednn_softmax *softmax) {
    _mm_setcsr(_mm_getcsr() & ~(unsigned)_MM_EXCEPT_INVALID);
    onednn_softmax_run(state, softmax);
    return (_mm_getcsr() & _MM_EXCEPT_INVALID) != 0;
}

/// Makes a row that holds a NaN one of NaNs.
static void spread_nan(float *y, size_t n) {
    size_t i = 0;
    while (i < n && !isnan(y[i])) {
        i++;
    }
    for (size_t j = 0; j < n && i < n; j++) {
        y[j] = NAN;
    }
}

/// Whether the item can be one primitive's work as it lies.
static bool is_plain(const struct mha_softmax_args *args) {
    const struct mha_span first = mha_row_span(&args->mask, args->first_row);
    const struct mha_span last = mha_row_span(&args->mask, args->first_row + args->rows - 1);
    bool plain = args->x_stride == args->cols && args->y_stride == args->cols && first.begin == 0 &&
                 last.begin == 0 && first.end == args->cols && last.end == args->cols;
    for (size_t r = 0; r < args->rows && plain; r++) {
        plain = !all_unseen((const float *)args->x + r * args->x_stride, args->cols);
    }
    return plain;
}

static struct onednn_softmax plain_softmax(const struct mha_softmax_args *args) {
    return (struct onednn_softmax){args->rows,     args->cols, args->x,
                                   args->x_stride, args->y,    args->y_stride};
}

/// The softmax of rows [first, first + rows) of an item, rows <= GROUP; cols is 0 when none of them
/// sees a key.
static struct onednn_softmax group_softmax(const struct mha_softmax_args *args, size_t first,
                                           size_t rows, float *dense) {
    const struct mha_span top = mha_row_span(&args->mask, args->first_row + first);
    const struct mha_span bottom = mha_row_span(&args->mask, args->first_row + first + rows - 1);
    // Spans move forwards from row to row.
    const size_t cols = bottom.end > top.begin ? bottom.end - top.begin : 0;
    return (struct onednn_softmax){rows, cols, dense, cols, dense, cols};
}

static void run_group(const struct mha_softmax_args *args, size_t first, size_t rows,
                      float *dense) {
    const struct onednn_softmax softmax = group_softmax(args, first, rows, dense);
    const size_t begin = mha_row_span(&args->mask, args->first_row + first).begin;
    bool zero[GROUP];
    for (size_t r = 0; r < rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + first + r);
        const float *x = (const float *)args->x + (first + r) * args->x_stride;
        float *row = dense + r * softmax.cols;
        zero[r] = all_unseen(x + span.begin, span.end - span.begin);
        // Of a row that sees no key the span may lie anywhere.
        const size_t lead = zero[r] ? 0 : span.begin - begin;
        const size_t seen = zero[r] ? 0 : span.end - span.begin;
        fill_unseen(row, lead);
        memcpy(row + lead, x + span.begin, seen * sizeof(*row));
        fill_unseen(row + lead + seen, softmax.cols - lead - seen);
    }
    const bool invalid = softmax.cols > 0 && raises_invalid(args->state, &softmax);
    for (size_t r = 0; r < rows; r++) {
        const struct mha_span span = mha_row_span(&args->mask, args->first_row + first + r);
        float *y = args->y + (first + r) * args->y_stride;
        if (zero[r]) {
            memset(y, 0, args->cols * sizeof(*y));
            continue;
        }
        if (invalid) {
            spread_nan(dense + r * softmax.cols, softmax.cols);
        }
        memset(y, 0, span.begin * sizeof(*y));
        memcpy(y + span.begin, dense + r * softmax.cols + (span.begin - begin),
               (span.end - span.begin) * sizeof(*y));
        memset(y + span.end, 0, (args->cols - span.end) * sizeof(*y));
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    if (args->rows == 0 || args->cols == 0) {
        return;
    }
    if (is_plain(args)) {
        const struct onednn_softmax softmax = plain_softmax(args);
        const bool invalid = raises_invalid(args->state, &softmax);
        for (size_t r = 0; r < args->rows && invalid; r++) {
            spread_nan(args->y + r * args->y_stride, args->cols);
        }
        return;
    }
    for (size_t first = 0; first < args->rows; first += GROUP) {
        run_group(args, first, args->rows - first < GROUP ? args->rows - first : GROUP, workspace);
    }
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    return GROUP * shape->seq_kv * sizeof(float);
}

/// Prepares an item of one head with dense rows; others are made when they come.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    void *state = product_new();
    const struct mha_softmax_args args = {
        .rows = shape->seq_q,
        .cols = shape->seq_kv,
        .mask = *mask,
        .x_stride = shape->seq_kv,
        .y_stride = shape->seq_kv,
    };
    bool good = state != NULL;
    if (good && args.rows > 0 && args.cols > 0 && mask->kind == MHA_MASK_NONE) {
        const struct onednn_softmax softmax = plain_softmax(&args);
        good = onednn_softmax_prepare(state, &softmax);
    }
    for (size_t first = 0; first < args.rows && good && mask->kind != MHA_MASK_NONE;
         first += GROUP) {
        const size_t rows = args.rows - first < GROUP ? args.rows - first : GROUP;
        const struct onednn_softmax softmax = group_softmax(&args, first, rows, NULL);
        good = softmax.cols == 0 || onednn_softmax_prepare(state, &softmax);
    }
    if (!good && state) {
        product_free(state);
        state = NULL;
    }
    return state;
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return product_supports(shape, why);
}

const struct mha_kernel PEER_KERNEL(softmax) = {
    PEER_NAMES(softmax),
    .summary = "softmax primitive over dense rows",
    .run = {.softmax = run},
    .workspace_bytes = workspace_bytes,
    .supports = supports,
    .create = create,
    .destroy = product_free,
    .row_multiple = GROUP,
    .flags = MHA_FLAG_PEER | MHA_FLAG_IN_PLACE,
};
