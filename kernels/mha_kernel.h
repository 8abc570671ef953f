/// The public plug-in ABI of mhabench: shapes, masks, the argument struct and the function type of
/// every op, and the descriptor by which a kernel introduces itself.
///
/// A library of kernels (the built-in ones, a peer, a user's plug-in) is a shared object that
/// exports one function, mha_kernel_library(). All else in it may stay hidden. The header is valid
/// C11 and C++20 and needs nothing but the C library's headers.
///
/// Conventions, the same for every op:
///   - One call of run() does one work item, serially. Pointers are already at the item.
///   - Strides are in elements. Elements between a row's end and the next row's start are never
///   touched.
///   - A kernel reads and writes exactly what its contract names: not one byte before or behind.
///   - It returns with the processor as it found it: callee-saved registers, rounding mode and the
///   other control bits; on x86 with the upper halves of the vector registers clear (vzeroupper).
///   - `const void *` tensors hold elements of the descriptor's dtype; results are float unless
///   said otherwise.
///   - Zero rows or columns are a no-op.
///   - Results and inputs below the smallest normal (2^-126 for f32) may be flushed to zero.
#ifndef MHA_KERNEL_H
#define MHA_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Grows by one with every change that an old plug-in would misread.
#define MHA_ABI_VERSION 1u

/// Marks the one function that a kernel library exports.
#define MHA_EXPORT __attribute__((visibility("default")))

/// The shape of a whole attention problem, as the literature names it.
/// heads is a multiple of kv_heads; d_model = heads * head_dim.
struct mha_shape {
    size_t batch;     ///< Independent sequences, >= 1.
    size_t heads;     ///< Query heads, >= 1.
    size_t kv_heads;  ///< Key and value heads, >= 1; less than heads is grouped-query attention.
    size_t seq_q;     ///< Queries per sequence.
    size_t seq_kv;    ///< Keys per sequence.
    size_t head_dim;  ///< Width of one head, >= 1.
};

/// Which keys a query sees. Every mask is one interval of keys per query, so that a kernel needs
/// mha_row_span() and nothing else.
enum mha_mask_kind {
    MHA_MASK_NONE,     ///< All keys.
    MHA_MASK_CAUSAL,   ///< Keys up to the query's own position; the last query is aligned with the
                       ///< last key.
    MHA_MASK_LENGTHS,  ///< The first `length` keys.
    MHA_MASK_WINDOW,   ///< Causal, and of those only the last `window`.
};

struct mha_mask {
    enum mha_mask_kind kind;
    size_t seq_q;   ///< Queries of the whole sequence (not of the item).
    size_t seq_kv;  ///< Keys of the whole sequence.
    size_t length;  ///< MHA_MASK_LENGTHS: valid keys of this sequence, <= seq_kv.
    size_t window;  ///< MHA_MASK_WINDOW: keys seen, >= 1.
};

/// Visible keys of one query: [begin, end), empty when begin == end.
struct mha_span {
    size_t begin;
    size_t end;
};

/// Gets the keys that query `row` (its index in the whole sequence, < seq_q) sees under `mask`.
static inline struct mha_span mha_row_span(const struct mha_mask *mask, size_t row) {
    struct mha_span span = {0, mask->seq_kv};
    if (mask->kind == MHA_MASK_CAUSAL || mask->kind == MHA_MASK_WINDOW) {
        const size_t seen = row + 1 + mask->seq_kv;  // > seq_q when the query sees any key
        span.end = seen > mask->seq_q ? seen - mask->seq_q : 0;
        if (span.end > mask->seq_kv) {
            span.end = mask->seq_kv;
        }
        if (mask->kind == MHA_MASK_WINDOW && span.end > mask->window) {
            span.begin = span.end - mask->window;
        }
    } else if (mask->kind == MHA_MASK_LENGTHS && mask->length < mask->seq_kv) {
        span.end = mask->length;
    }
    return span;
}

/// softmax: y[r][c] = exp(x[r][c] - max_r) / sum_r over the keys that row r sees; zero elsewhere.
///
/// Special values: a row that sees no key, or whose visible scores are all -inf, yields zeros. A
/// NaN or +inf among the visible scores yields NaN in every visible column. Masked scores are not
/// read into the result.
struct mha_softmax_args {
    const void *state;  ///< What create() returned for this shape, or NULL.
    size_t rows;        ///< Rows of this item.
    size_t cols;        ///< Row length, = mask.seq_kv.
    size_t first_row;   ///< Index of the item's first row in the sequence, for the mask.
    struct mha_mask mask;
    const void *x;    ///< [rows, cols] scores; any alignment.
    size_t x_stride;  ///< >= cols.
    float *y;         ///< [rows, cols]; equals x with an equal stride, or does not overlap it.
    size_t y_stride;  ///< >= cols.
};
typedef void mha_softmax_fn(const struct mha_softmax_args *args, void *workspace);

/// qk: s[h][r][j] = scale * sum_i q[h][r][i] * k[j][i], for the `heads` query heads that share one
/// kv head. No mask: every score is computed. IEEE special values propagate as the formula has
/// them.
struct mha_qk_args {
    const void *state;  ///< What create() returned for this shape, or NULL.
    const void
        *packed;   ///< What pack() wrote for this kv head, or NULL when the kernel has no pack().
    size_t heads;  ///< Query heads of the group, = shape.heads / shape.kv_heads.
    size_t rows;   ///< Queries of this item.
    size_t first_row;  ///< Index of the item's first query in the sequence.
    size_t seq_kv;     ///< Keys.
    size_t head_dim;
    const void *q;  ///< [heads, rows, head_dim]; any alignment.
    size_t q_head_stride;
    size_t q_stride;  ///< >= head_dim.
    const void *k;    ///< [seq_kv, head_dim]; any alignment.
    size_t k_stride;  ///< >= head_dim.
    float *s;         ///< [heads, rows, seq_kv]; overlaps nothing.
    size_t s_head_stride;
    size_t s_stride;  ///< >= seq_kv.
    float scale;      ///< Usually 1/sqrt(head_dim).
};
typedef void mha_qk_fn(const struct mha_qk_args *args, void *workspace);

/// concat: y[t][h * head_dim + i] = x[h][t][i]: the heads' outputs side by side. A copy, bit for
/// bit.
struct mha_concat_args {
    const void *state;
    size_t heads;
    size_t tokens;  ///< Tokens of this item.
    size_t head_dim;
    const void *x;  ///< [heads, tokens, head_dim]; any alignment.
    size_t x_head_stride;
    size_t x_stride;  ///< >= head_dim.
    void *y;          ///< [tokens, heads * head_dim]; overlaps nothing.
    size_t y_stride;  ///< >= heads * head_dim.
};
typedef void mha_concat_fn(const struct mha_concat_args *args, void *workspace);

/// split: y[h][t][i] = x[t][h * head_dim + i]: the inverse of concat. A copy, bit for bit.
struct mha_split_args {
    const void *state;
    size_t heads;
    size_t tokens;  ///< Tokens of this item.
    size_t head_dim;
    const void *x;    ///< [tokens, heads * head_dim]; any alignment.
    size_t x_stride;  ///< >= heads * head_dim.
    void *y;          ///< [heads, tokens, head_dim]; overlaps nothing.
    size_t y_head_stride;
    size_t y_stride;  ///< >= head_dim.
};
typedef void mha_split_fn(const struct mha_split_args *args, void *workspace);

/// peak: a ceiling, not a step of attention. Every accumulator lane starts at `start` and runs
/// `steps` times through lane = fma(lane, 1, increment), so that the work can be checked: each ends
/// as start + steps * increment, exact in f32 by the choice of the values. The kernel's lanes are
/// stored to y, repeated in a cycle until MHA_PEAK_LANES are written.
struct mha_peak_args {
    const void *state;
    size_t steps;  ///< Rounds over all accumulators; each does flops_per_step operations.
    float start;   ///< An integer, as is increment; start + steps * increment < 2^24.
    float increment;
    float *y;  ///< [MHA_PEAK_LANES]
};
/// 32 accumulators of 16 lanes: more than any ISA's register file holds.
#define MHA_PEAK_LANES 512
typedef void mha_peak_fn(const struct mha_peak_args *args, void *workspace);

/// read, write, copy: ceilings, not steps of attention; the bandwidth of one access mix.
/// read stores the sum of x to y[0]; write stores value to all of y; copy stores x to y.
struct mha_stream_args {
    const void *state;
    size_t count;   ///< Elements.
    float value;    ///< write only.
    const void *x;  ///< [count], any alignment; NULL for write.
    float *y;       ///< [count], [1] for read; overlaps nothing.
};
typedef void mha_stream_fn(const struct mha_stream_args *args, void *workspace);

/// The argument struct of any op.
union mha_args {
    struct mha_softmax_args softmax;
    struct mha_qk_args qk;
    struct mha_concat_args concat;
    struct mha_split_args split;
    struct mha_peak_args peak;
    struct mha_stream_args stream;
};

/// The function of a kernel; the member of its op is set.
union mha_run {
    mha_softmax_fn *softmax;
    mha_qk_fn *qk;
    mha_concat_fn *concat;
    mha_split_fn *split;
    mha_peak_fn *peak;
    mha_stream_fn *read;
    mha_stream_fn *write;
    mha_stream_fn *copy;
};

/// Packs one kv head's operand once, to be shared read-only by the items of that head.
/// `args` is the op's argument struct with the operand, the shape and the scale set; query and
/// result pointers are NULL. `packed` is 64-byte aligned and packed_bytes(shape) long.
union mha_pack {
    void (*qk)(const struct mha_qk_args *args, void *packed);
};

enum mha_kernel_flags {
    MHA_FLAG_PEER = 1u << 0,  ///< Stands beside our kernels; someone else's library does the work.
    MHA_FLAG_NONDETERMINISTIC =
        1u << 1,  ///< Two runs may differ in bits; the output is verified anew after timing.
    MHA_FLAG_IN_PLACE = 1u << 2,  ///< May be called with the output equal to the input.
};

/// One kernel variant. Strings and the struct itself live as long as the library is loaded.
struct mha_kernel {
    const char *name;   ///< <op>_<dtype>_<isa>_<tag>: file, symbol and string alike.
    const char *op;     ///< "softmax", "qk", ...
    const char *dtype;  ///< "f32", ...
    const char *isa;    ///< "scalar", "avx2", "avx512", "neon", ...: what the CPU must have.
    const char *tag;    ///< Algorithm and tile; a peer's library; "autovec" for the compiler's own.
    const char *summary;  ///< One line for `mhabench list`.
    union mha_run run;
    union mha_pack pack;  ///< Optional; with it packed_bytes is set.
    /// Bytes of scratch per thread, 64-byte aligned; NULL means none.
    size_t (*workspace_bytes)(const struct mha_shape *shape);
    /// Bytes of one kv head's packed operand; NULL means that the kernel does not pack.
    size_t (*packed_bytes)(const struct mha_shape *shape);
    /// Tells whether the kernel takes this shape and mask (strides and alignment are always
    /// arbitrary); NULL means that it takes every one. When false, *why may receive a static
    /// string.
    bool (*supports)(const struct mha_shape *shape, const struct mha_mask *mask, const char **why);
    /// Makes what run() needs for a shape (JIT code, primitives); not timed with run(). NULL on
    /// failure. Optional; with it destroy is set. The result is shared read-only by all threads.
    void *(*create)(const struct mha_shape *shape, const struct mha_mask *mask);
    void (*destroy)(void *state);
    /// Items hold a multiple of this many rows (or tokens), but for the last; 0 counts as 1.
    uint32_t row_multiple;
    uint32_t step;   ///< Elements (or rows) of the main loop, from which test sizes are derived; 0
                     ///< counts as 16.
    uint32_t flags;  ///< Of enum mha_kernel_flags.
    uint32_t flops_per_step;  ///< peak only: floating-point operations of one step.
    /// softmax only, optional: the exponential that run() uses, so that it can be checked on its
    /// own: y[i] = exp(x[i]) for i < count, x[i] in [-inf, 0] or NaN. Any count and alignment; y
    /// does not overlap x. exp(-inf) is exactly 0, exp(NaN) is NaN, results below 2^-126 may be
    /// flushed.
    void (*exp_f32)(size_t count, const float *x, float *y);
};

/// A kernel and the hash of its machine code ("" when the library has none).
struct mha_library_entry {
    const struct mha_kernel *kernel;
    const char *code_hash;
};

/// A library of kernels.
struct mha_library {
    uint32_t abi_version;   ///< MHA_ABI_VERSION of the header it was built with.
    uint32_t kernel_bytes;  ///< sizeof(struct mha_kernel) there.
    const char *name;       ///< "mhabench", "libxsmm", a plug-in's own.
    const char *version;    ///< Free text; what ran, e.g. "1.17".
    size_t count;
    const struct mha_library_entry *entries;  ///< [count]
};

/// The function that every kernel library exports. Called once after loading; must not start
/// threads. Never returns NULL.
MHA_EXPORT const struct mha_library *mha_kernel_library(void);

/// The name of that function, for dlsym().
#define MHA_LIBRARY_SYMBOL "mha_kernel_library"

#ifdef __cplusplus
}
#endif

#endif
