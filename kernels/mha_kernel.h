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
///   said otherwise. "f32" is float, "f16" IEEE binary16, "bf16" the upper half of a float, both at
///   any multiple of two bytes; sums are float. f16's denormals are numbers like others: as floats
///   they are normal.
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

/// What is added to the scores of an item's heads for the distance between query and key, before
/// the softmax. A query's position is row + seq_kv - seq_q, so that the last query stands at the
/// last key; the distance of key j is j - position.
enum mha_bias_kind {
    MHA_BIAS_NONE,
    MHA_BIAS_ALIBI,  ///< -slope * |distance|: Press et al. 2022 (arXiv:2108.12409), section 3.
    MHA_BIAS_T5,     ///< table[mha_t5_bucket(distance)]: Raffel et al. 2020 (JMLR 21), section 2.1.
};

/// Relative positions that T5 tells apart.
#define MHA_T5_BUCKETS 32

struct mha_bias {
    enum mha_bias_kind kind;
    size_t seq_q;         ///< Queries of the whole sequence.
    size_t seq_kv;        ///< Keys of the whole sequence.
    const float *slopes;  ///< MHA_BIAS_ALIBI: [heads of the item], > 0.
    const float *table;   ///< MHA_BIAS_T5: [heads of the item][MHA_T5_BUCKETS].
    size_t table_stride;  ///< >= MHA_T5_BUCKETS.
    bool causal;          ///< MHA_BIAS_T5: keys ahead share bucket 0, and all buckets look back.
};

/// Gets the first distance, in one direction, of bucket `bucket` < mha_t5_buckets(causal) of that
/// direction; none ends the last one. Near distances have a bucket each, far ones share buckets
/// that grow by a constant factor up to distance 128. The limits are those of the formula in exact
/// arithmetic; a formula that takes logarithms in f32 can be off by one at a limit.
static inline size_t mha_t5_bucket_begin(size_t bucket, bool causal) {
    // First distance of each shared bucket: ceil(8 * 16^(k/8)) and ceil(16 * 8^(k/16)).
    static const unsigned char both[] = {8, 12, 16, 23, 32, 46, 64, 91};
    static const unsigned char back[] = {16, 19, 21, 24, 27, 31, 35, 40,
                                         46, 52, 59, 67, 77, 87, 99, 113};
    const unsigned char *const limits = causal ? back : both;
    return bucket < limits[0] ? bucket : limits[bucket - limits[0]];
}

/// Gets the number of buckets of one direction.
static inline size_t mha_t5_buckets(bool causal) {
    return causal ? MHA_T5_BUCKETS : MHA_T5_BUCKETS / 2;
}

/// Gets the T5 bucket of a distance (key - query position): of those behind, or after them of those
/// ahead.
static inline size_t mha_t5_bucket(ptrdiff_t distance, bool causal) {
    const size_t count = mha_t5_buckets(causal);
    const size_t first = !causal && distance > 0 ? count : 0;
    const size_t far = distance < 0 ? (size_t)-distance : causal ? 0 : (size_t)distance;
    size_t bucket = far < count / 2 ? far : count / 2;
    while (bucket + 1 < count && far >= mha_t5_bucket_begin(bucket + 1, causal)) {
        bucket++;
    }
    return first + bucket;
}

/// bias: y[r][c] = x[r][c] + bias of query first_row + r and key c, for one head. No mask: every
/// score gets its bias. IEEE special values propagate.
struct mha_bias_args {
    const void *state;
    size_t rows;           ///< Queries of this item.
    size_t cols;           ///< Keys, = bias.seq_kv.
    size_t first_row;      ///< Index of the item's first query in the sequence.
    struct mha_bias bias;  ///< Of one head; kind is not MHA_BIAS_NONE.
    const void *x;         ///< [rows, cols] scores; any alignment.
    size_t x_stride;       ///< >= cols.
    float *y;              ///< [rows, cols]; equals x with an equal stride, or overlaps nothing.
    size_t y_stride;       ///< >= cols.
};
typedef void mha_bias_fn(const struct mha_bias_args *args, void *workspace);

/// pv: o[h][r][i] = sum over the keys j that query r sees of p[h][r][j] * v[j][i], for the `heads`
/// query heads that share one kv head. Weights and values of keys that a query does not see are not
/// read into its result: a NaN there must not leak. A query that sees no key gets zeros.
struct mha_pv_args {
    const void *state;
    const void *packed;  ///< What pack() wrote for this kv head, or NULL without pack().
    size_t heads;        ///< Query heads of the group, = shape.heads / shape.kv_heads.
    size_t rows;         ///< Queries of this item.
    size_t first_row;    ///< Index of the item's first query in the sequence, for the mask.
    size_t seq_kv;       ///< Keys, = mask.seq_kv.
    size_t head_dim;
    struct mha_mask mask;
    const void *p;  ///< [heads, rows, seq_kv]; any alignment.
    size_t p_head_stride;
    size_t p_stride;  ///< >= seq_kv.
    const void *v;    ///< [seq_kv, head_dim]; any alignment.
    size_t v_stride;  ///< >= head_dim.
    float *o;         ///< [heads, rows, head_dim]; overlaps nothing.
    size_t o_head_stride;
    size_t o_stride;  ///< >= head_dim.
};
typedef void mha_pv_fn(const struct mha_pv_args *args, void *workspace);

/// sdpa: o[h][r] = softmax over the keys that query r sees of (scale * q[h][r].k[j] + bias) times
/// v, for the `heads` query heads that share one kv head, without a score matrix in memory:
/// workspace is O(block), not O(rows * seq_kv).
///
/// Special values: as softmax and pv have them. A query that sees no key, or whose visible scores
/// are all -inf, gets zeros; a NaN or +inf among its visible scores yields NaN in the whole row;
/// keys and values that it does not see are not read into its result.
struct mha_sdpa_args {
    const void *state;
    const void *packed;  ///< What pack() wrote for this kv head, or NULL without pack().
    size_t heads;        ///< Query heads of the group, = shape.heads / shape.kv_heads.
    size_t rows;         ///< Queries of this item.
    size_t first_row;    ///< Index of the item's first query in the sequence.
    size_t seq_kv;       ///< Keys, = mask.seq_kv.
    size_t head_dim;
    struct mha_mask mask;
    struct mha_bias bias;  ///< Of the group's heads.
    const void *q;         ///< [heads, rows, head_dim]; any alignment.
    size_t q_head_stride;
    size_t q_stride;  ///< >= head_dim.
    const void *k;    ///< [seq_kv, head_dim]; any alignment.
    size_t k_stride;  ///< >= head_dim.
    const void *v;    ///< [seq_kv, head_dim]; any alignment.
    size_t v_stride;  ///< >= head_dim.
    float *o;         ///< [heads, rows, head_dim]; overlaps nothing.
    size_t o_head_stride;
    size_t o_stride;  ///< >= head_dim.
    float scale;      ///< Usually 1/sqrt(head_dim).
};
typedef void mha_sdpa_fn(const struct mha_sdpa_args *args, void *workspace);

/// Columns of a weight that one item of a projection computes, and that are packed as one piece;
/// the last piece of a weight may be narrower. A multiple of every register tile's width (16, 24,
/// 32, 48, 64).
#define MHA_PROJ_COLS 384

/// qkv_proj, out_proj: y = x * w, a row block by a column block. For qkv_proj the columns of w are
/// those of W_Q, then W_K, then W_V, each with its heads side by side. IEEE special values
/// propagate. w is constant: it is packed once, and the packing is not timed with run().
struct mha_proj_args {
    const void *state;
    const void *packed;  ///< What pack() wrote for these columns of w, or NULL without pack().
    size_t rows;         ///< Tokens of this item.
    size_t depth;        ///< Input features: rows of w.
    size_t cols;         ///< Output features of this item, <= MHA_PROJ_COLS.
    const void *x;       ///< [rows, depth]; any alignment.
    size_t x_stride;     ///< >= depth.
    const void *w;       ///< [depth, cols]; any alignment.
    size_t w_stride;     ///< >= cols.
    float *y;            ///< [rows, cols]; overlaps nothing.
    size_t y_stride;     ///< >= cols.
};
typedef void mha_proj_fn(const struct mha_proj_args *args, void *workspace);

/// embed: y[t] = token[ids[t]] + position[t] + segment[segments[t]], the sum of three gathered
/// rows: Devlin et al. 2018 (arXiv:1810.04805), section 3 and figure 2. The sums are added in that
/// order.
struct mha_embed_args {
    const void *state;
    size_t tokens;            ///< Of this item.
    size_t cols;              ///< d_model.
    const int32_t *ids;       ///< [tokens], each < the number of rows of `token`.
    const int32_t *segments;  ///< [tokens], each < the number of rows of `segment`.
    const void *token;        ///< [vocabulary, cols]; any alignment.
    size_t token_stride;      ///< >= cols.
    const void *position;     ///< [tokens, cols]: the row of the item's first token first.
    size_t position_stride;   ///< >= cols.
    const void *segment;      ///< [segments, cols].
    size_t segment_stride;    ///< >= cols.
    float *y;                 ///< [tokens, cols]; overlaps nothing.
    size_t y_stride;          ///< >= cols.
};
typedef void mha_embed_fn(const struct mha_embed_args *args, void *workspace);

/// sinusoid: y[t] = x[t] + pe[t], pe being the table PE(pos, 2i) = sin(pos / 10000^(2i/d)),
/// PE(pos, 2i+1) = cos of the same: Vaswani et al. 2017 (arXiv:1706.03762), section 3.5.
struct mha_sinusoid_args {
    const void *state;
    size_t tokens;  ///< Of this item.
    size_t cols;    ///< d_model.
    const void *x;  ///< [tokens, cols]; any alignment.
    size_t x_stride;
    const float *pe;  ///< [tokens, cols]: the row of the item's first token first.
    size_t pe_stride;
    float *y;  ///< [tokens, cols]; equals x with an equal stride, or overlaps nothing.
    size_t y_stride;
};
typedef void mha_sinusoid_fn(const struct mha_sinusoid_args *args, void *workspace);

/// rope: rotates each pair (a, b) of a row by its angle: y_a = a cos - b sin, y_b = a sin + b cos.
/// Su et al. 2021 (arXiv:2104.09864), section 3.4.2. Pair i of a row is elements 2i and 2i + 1
/// (interleaved), or i and i + head_dim/2 (half split). The last element of an odd row is copied.
struct mha_rope_args {
    const void *state;
    size_t rows;  ///< Tokens of this item, of one head.
    size_t head_dim;
    bool half;            ///< Half split.
    const float *cos;     ///< [rows, head_dim/2]: the row of the item's first token first.
    const float *sin;     ///< [rows, head_dim/2]
    size_t angle_stride;  ///< Of both.
    const void *x;        ///< [rows, head_dim]; any alignment.
    size_t x_stride;
    float *y;  ///< [rows, head_dim]; equals x with an equal stride, or overlaps nothing.
    size_t y_stride;
};
typedef void mha_rope_fn(const struct mha_rope_args *args, void *workspace);

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
    struct mha_bias_args bias;
    struct mha_pv_args pv;
    struct mha_sdpa_args sdpa;
    struct mha_proj_args qkv_proj;
    struct mha_proj_args out_proj;
    struct mha_embed_args embed;
    struct mha_sinusoid_args sinusoid;
    struct mha_rope_args rope;
    struct mha_peak_args peak;
    struct mha_stream_args stream;
};

/// The function of a kernel; the member of its op is set.
union mha_run {
    mha_softmax_fn *softmax;
    mha_qk_fn *qk;
    mha_concat_fn *concat;
    mha_split_fn *split;
    mha_bias_fn *bias;
    mha_pv_fn *pv;
    mha_sdpa_fn *sdpa;
    mha_proj_fn *qkv_proj;
    mha_proj_fn *out_proj;
    mha_embed_fn *embed;
    mha_sinusoid_fn *sinusoid;
    mha_rope_fn *rope;
    mha_peak_fn *peak;
    mha_stream_fn *read;
    mha_stream_fn *write;
    mha_stream_fn *copy;
};

/// Packs one kv head's operand (qkv_proj, out_proj: one piece of columns of the weight, the last of
/// which is narrower than packed_bytes() tells) once, to be shared read-only by its items.
/// `args` is the op's argument struct with the operand, the shape and the scale set; query and
/// result pointers are NULL. `packed` is 64-byte aligned and packed_bytes(shape) long.
union mha_pack {
    void (*qk)(const struct mha_qk_args *args, void *packed);
    void (*pv)(const struct mha_pv_args *args, void *packed);
    void (*sdpa)(const struct mha_sdpa_args *args, void *packed);
    void (*qkv_proj)(const struct mha_proj_args *args, void *packed);
    void (*out_proj)(const struct mha_proj_args *args, void *packed);
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
    const char *dtype;  ///< "f32"; qk, pv, sdpa also "bf16", "f16"; peak also "bf16".
    const char *isa;    ///< "scalar", "avx2", "avx512bf16", "neon", ...: what the CPU must have.
    const char *tag;    ///< Algorithm and tile; a peer's library; "autovec" for the compiler's own.
    const char *summary;  ///< One line for `mhabench list`.
    union mha_run run;
    union mha_pack pack;  ///< Optional; with it packed_bytes is set.
    /// Bytes of scratch per thread, 64-byte aligned; NULL means none.
    size_t (*workspace_bytes)(const struct mha_shape *shape);
    /// Bytes of one kv head's packed operand (or one piece of a weight); NULL means that the kernel
    /// does not pack, 0 that it does not for this shape: then `packed` is NULL in run().
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
    /// own (a power of 2 at x[i] log2 e in more than one float): y[i] = exp(x[i]) for i < count,
    /// x[i] in [-inf, 0] or NaN. Any count and alignment; y does not overlap x. exp(-inf) is
    /// exactly 0, exp(NaN) is NaN, results below 2^-126 may be flushed.
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
