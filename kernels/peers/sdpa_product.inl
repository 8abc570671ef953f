/// sdpa as a pipeline: a library's product for the scores, softmax on the best other peer's
/// exponential, and the library's product again.
///
/// Algorithm: per head, blocks of BLOCK_ROWS rows against the keys that any of them sees; the bias
/// is added to the scores in between. Scores of keys that a row does not see are computed and not
/// read. Error: those of the steps, see pv_blocks.inl and expf_span.inl.
#include "libmvec.h"
#include "pv_blocks.inl"

#define PEER_EXP(v) LIBMVEC_EXPF(v)
#include "expf_span.inl"

/// From this distance on, either way, T5 tells distances apart no longer (mha_t5_bucket()).
enum { FAR = 128, DISTANCES = 2 * FAR + 1 };

/// Writes the biases of one head by distance, that of d at d + FAR.
static void t5_by_distance(const struct mha_bias *bias, size_t head, float *table) {
    for (size_t i = 0; i < DISTANCES; i++) {
        table[i] = bias->table[head * bias->table_stride +
                               mha_t5_bucket((ptrdiff_t)i - FAR, bias->causal)];
    }
}

/// Adds the bias of one head to the scores of one query over a span of keys.
static void add_bias(const struct mha_bias *bias, size_t head, const float *by_distance, size_t row,
                     struct mha_span span, float *s) {
    // Distance of key 0.
    const ptrdiff_t first = (ptrdiff_t)bias->seq_q - (ptrdiff_t)(row + bias->seq_kv);
    if (bias->kind == MHA_BIAS_ALIBI) {
        const float slope = bias->slopes[head];
        for (size_t j = span.begin; j < span.end; j++) {
            s[j] -= slope * fabsf((float)(first + (ptrdiff_t)j));
        }
    } else if (bias->kind == MHA_BIAS_T5) {
        for (size_t j = span.begin; j < span.end; j++) {
            const ptrdiff_t distance = first + (ptrdiff_t)j;
            s[j] += by_distance[distance < -FAR ? 0 : distance > FAR ? 2 * FAR : distance + FAR];
        }
    }
}

static bool all_lowest(const float *s, struct mha_span span) {
    size_t j = span.begin;
    while (j < span.end && s[j] == -INFINITY) {
        j++;
    }
    return j == span.end;
}

/// Where a block's scores are, and what each query sees: rows [first, first + rows) of the item.
struct scores {
    float *s;  ///< [BLOCK_ROWS][seq_kv]
    size_t first, rows;
    bool zero[BLOCK_ROWS];
};

static struct product score_product(const struct mha_sdpa_args *args, const struct scores *block) {
    const struct mha_span top = mha_row_span(&args->mask, args->first_row + block->first);
    const struct mha_span bottom =
        mha_row_span(&args->mask, args->first_row + block->first + block->rows - 1);
    struct product product = {
        .rows = block->rows,
        .depth = args->head_dim,
        .a_stride = args->q_stride,
        .c_stride = args->seq_kv,
    };
#ifdef PRODUCT_PACK_COLS
    const size_t begin = top.begin / PRODUCT_PACK_COLS * PRODUCT_PACK_COLS;
    product.b = args->packed ? (const float *)args->packed + begin * args->head_dim : NULL;
    product.b_is = B_PACKED;
    product.factor = 1;
#else
    const size_t begin = top.begin;
    product.b = args->k ? (const float *)args->k + begin * args->k_stride : NULL;
    product.b_stride = args->k_stride;
    product.b_is = B_TRANSPOSED;
    product.factor = args->scale;
#endif
    // Spans move forwards from row to row.
    product.cols = bottom.end > begin ? bottom.end - begin : 0;
    product.c = block->s ? block->s + begin : NULL;
    return product;
}

static struct mha_pv_args weights_of(const struct mha_sdpa_args *args, const struct scores *block) {
    return (struct mha_pv_args){
        .state = args->state,
        .rows = block->rows,
        .first_row = args->first_row + block->first,
        .seq_kv = args->seq_kv,
        .head_dim = args->head_dim,
        .mask = args->mask,
        .p = block->s,
        .p_stride = args->seq_kv,
        .v = args->v,
        .v_stride = args->v_stride,
        .o_stride = args->o_stride,
    };
}

static void run_block(const struct mha_sdpa_args *args, size_t h, struct scores *block,
                      const float *by_distance, float *edge) {
    struct product product = score_product(args, block);
    product.a = (const float *)args->q + h * args->q_head_stride + block->first * args->q_stride;
    if (product.cols > 0) {
        product_run(args->state, &product);
    }
    for (size_t r = 0; r < block->rows; r++) {
        const size_t row = args->first_row + block->first + r;
        const struct mha_span span = mha_row_span(&args->mask, row);
        float *s = block->s + r * args->seq_kv;
        add_bias(&args->bias, h, by_distance, row, span, s);
        block->zero[r] = all_lowest(s, span);
        if (!block->zero[r]) {
            span_softmax(s + span.begin, s + span.begin, span.end - span.begin);
        }
    }
    struct mha_pv_args weights = weights_of(args, block);
    weights.o = args->o + h * args->o_head_stride + block->first * args->o_stride;
    head(&weights, 0, NULL, edge);
    for (size_t r = 0; r < block->rows; r++) {
        if (block->zero[r]) {
            memset(weights.o + r * args->o_stride, 0, args->head_dim * sizeof(*weights.o));
        }
    }
}

static void run(const struct mha_sdpa_args *args, void *workspace) {
    float *const edge = workspace;
    struct scores block = {.s = edge + (size_t)BLOCK_ROWS * EDGE_KEYS};
    float by_distance[DISTANCES];
    for (size_t h = 0; h < args->heads; h++) {
        if (args->bias.kind == MHA_BIAS_T5) {
            t5_by_distance(&args->bias, h, by_distance);
        }
        for (block.first = 0; block.first < args->rows; block.first += BLOCK_ROWS) {
            block.rows = smaller(BLOCK_ROWS, args->rows - block.first);
            run_block(args, h, &block, by_distance, edge);
        }
    }
}

static size_t workspace_bytes(const struct mha_shape *shape) {
    return BLOCK_ROWS * (EDGE_KEYS + shape->seq_kv) * sizeof(float);
}

static bool supports(const struct mha_shape *shape, const struct mha_mask *mask, const char **why) {
    (void)mask;
    return libmvec_ready(why) && product_supports(shape, why);
}

#ifdef PRODUCT_PACK_COLS
static size_t packed_bytes(const struct mha_shape *shape) {
    return product_packed_bytes(shape->head_dim, shape->seq_kv);
}

static void pack(const struct mha_sdpa_args *args, void *packed) {
    const struct product product = {
        .cols = args->seq_kv,
        .depth = args->head_dim,
        .b = args->k,
        .b_stride = args->k_stride,
        .b_is = B_TRANSPOSED,
        .factor = args->scale,
    };
    product_pack(args->state, &product, packed);
}
#endif

#ifdef PRODUCT_PREPARES
/// Prepares an item of whole heads with dense rows and the usual scale; others are made when they
/// come.
static void *create(const struct mha_shape *shape, const struct mha_mask *mask) {
    void *state = product_new();
    const struct mha_sdpa_args args = {
        .rows = shape->seq_q,
        .seq_kv = shape->seq_kv,
        .head_dim = shape->head_dim,
        .mask = *mask,
        .q_stride = shape->head_dim,
        .k_stride = shape->head_dim,
        .v_stride = shape->head_dim,
        .o_stride = shape->head_dim,
        .scale = 1.0f / sqrtf((float)shape->head_dim),
    };
    struct scores block = {0};
    bool good = state != NULL;
    for (; block.first < args.rows && good; block.first += BLOCK_ROWS) {
        block.rows = smaller(BLOCK_ROWS, args.rows - block.first);
        const struct product product = score_product(&args, &block);
        const struct mha_pv_args weights = weights_of(&args, &block);
        good = (product.cols == 0 || product_prepare(state, &product)) &&
               head(&weights, 0, state, NULL);
    }
    if (!good && state) {
        product_free(state);
        state = NULL;
    }
    return state;
}
#endif

const struct mha_kernel PEER_KERNEL(sdpa) = {
    PEER_NAMES(sdpa),
    .summary = PRODUCT_SUMMARY " in blocks of 128 rows, softmax on libmvec's expf",
    .flags = MHA_FLAG_PEER,
    .run = {.sdpa = run},
    .workspace_bytes = workspace_bytes,
    .supports = supports,
#ifdef PRODUCT_PACK_COLS
    .pack = {.sdpa = pack},
    .packed_bytes = packed_bytes,
#endif
#ifdef PRODUCT_PREPARES
    .create = create,
    .destroy = product_free,
#endif
};
