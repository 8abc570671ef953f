/// mha: the whole layer, from X to concat * W_O, composed of the kernels of the other ops. Vaswani
/// et al. 2017 (arXiv:1706.03762), section 3.2.2.
///
/// Keys and values of the first seq_kv - seq_q positions come from a cache, as they were left there
/// (rotated, under RoPE); those of the seq_q new tokens are appended behind them in every call.
#include "mha.h"

#include <math.h>
#include <string.h>

#include "position_tables.h"
#include "visible.h"

/// A layer attends to its own tokens at least.
static void normalise(struct problem *problem) {
    struct mha_shape *s = &problem->shape;
    s->seq_kv = s->seq_kv < s->seq_q ? s->seq_q : s->seq_kv;
}

size_t mha_past(const struct problem *problem) {
    return problem->shape.seq_kv - problem->shape.seq_q;
}

size_t mha_depth(const struct problem *problem) {
    return problem->shape.heads * problem->shape.head_dim;
}

size_t mha_tokens(const struct problem *problem) {
    return problem->shape.batch * problem->shape.seq_q;
}

size_t mha_outputs(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    return (s->heads + 2 * s->kv_heads) * s->head_dim;
}

struct mha_places mha_places(const struct problem *problem) {
    struct tensor_shape unused;
    struct mha_places at = {.x = 0, .w_qkv = 1, .w_out = 2};
    size_t count = 3;
    if (mha_past(problem) > 0) {
        at.past_k = count++;
        at.past_v = count++;
    }
    const enum position_kind kind = problem->position.kind;
    if (kind == POSITION_SINUSOID || kind == POSITION_LEARNED) {
        at.added = count++;
    } else if (kind == POSITION_ROPE) {
        at.angles = count++;
    } else if (position_bias_tensor(problem, &unused)) {
        at.bias = count++;
    }
    at.y = count;
    return at;
}

/// Tokens are rows of one plane: a projection knows no sequences. Weights are scaled as layers are
/// initialised, by 1/sqrt(d_model) (Glorot and Bengio 2010, equation 12).
static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    const struct mha_places at = mha_places(problem);
    const size_t depth = mha_depth(problem);
    const float scale = 1.0f / sqrtf((float)depth);
    shapes[at.x] = (struct tensor_shape){
        .name = "x", .role = TENSOR_INPUT, .planes = 1, .rows = mha_tokens(problem), .cols = depth};
    shapes[at.w_qkv] = (struct tensor_shape){.name = "w_qkv",
                                             .role = TENSOR_INPUT,
                                             .planes = 1,
                                             .rows = depth,
                                             .cols = mha_outputs(problem),
                                             .scale = scale};
    shapes[at.w_out] = shapes[at.w_qkv];
    shapes[at.w_out].name = "w_out";
    shapes[at.w_out].cols = depth;
    if (at.past_k) {
        shapes[at.past_k] = (struct tensor_shape){.name = "past_k",
                                                  .role = TENSOR_INPUT,
                                                  .planes = s->batch * s->kv_heads,
                                                  .rows = mha_past(problem),
                                                  .cols = s->head_dim};
        shapes[at.past_v] = shapes[at.past_k];
        shapes[at.past_v].name = "past_v";
    }
    if (at.added) {
        shapes[at.added] = (struct tensor_shape){
            .name = "position", .role = TENSOR_INPUT, .planes = 1, .rows = s->seq_q, .cols = depth};
        shapes[at.added].given = problem->position.kind == POSITION_SINUSOID;
    }
    if (at.angles) {
        shapes[at.angles] = (struct tensor_shape){.name = "angles",
                                                  .role = TENSOR_INPUT,
                                                  .planes = 2,
                                                  .rows = s->seq_q,
                                                  .cols = s->head_dim / 2,
                                                  .given = true};
    }
    if (at.bias) {
        position_bias_tensor(problem, &shapes[at.bias]);
    }
    shapes[at.y] = shapes[at.x];
    shapes[at.y].name = "y";
    shapes[at.y].role = TENSOR_OUTPUT;
    return at.y + 1;
}

/// The tables of the new tokens' positions, which follow those of the cache.
static void fill(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows) {
    const struct mha_places at = mha_places(problem);
    float *table = tensor_row(tensor, plane, first);
    const size_t position = mha_past(problem) + first;
    if (index == at.added) {
        position_sinusoid(position, rows, tensor->shape.cols, table, tensor->row_stride);
    } else if (index == at.bias && rows > 0) {
        position_bias_fill(problem, tensor);
    } else if (index == at.angles) {
        position_rope(position, rows, problem->shape.head_dim, problem->position.base,
                      plane == 0 ? table : NULL, plane == 1 ? table : NULL, tensor->row_stride);
    }
}

// --- the pipelines
// -----------------------------------------------------------------------------------

static const char *const unfused_parts[] = {"sinusoid", "qkv_proj", "split",   "rope",
                                            "qk",       "bias",     "softmax", "pv",
                                            "concat",   "out_proj", NULL};
static const char *const fused_parts[] = {"sinusoid", "qkv_proj", "split",    "rope",
                                          "sdpa",     "concat",   "out_proj", NULL};

enum { UNFUSED, FUSED, AUTOVEC };

static const struct op_pipeline pipelines[] = {
    [UNFUSED] = {"unfused", "qk, softmax and pv, scores in memory", unfused_parts, false},
    [FUSED] = {"fused", "sdpa, no scores in memory", fused_parts, false},
    [AUTOVEC] = {"autovec", "unfused, of the kernels that the compiler vectorised", unfused_parts,
                 true},
    {NULL, NULL, NULL, false},
};

/// What the steps hand on: X with positions added, its projection, its heads before and after they
/// are rotated, scores twice over, contexts, and these side by side.
enum { ADDED, PROJECTED, Q_RAW, K_RAW, Q, K, V, SCORES, WEIGHTS, CONTEXT, JOINED, BUFFERS };

static struct tensor_shape buffer(const char *name, enum tensor_role role, size_t planes,
                                  size_t rows, size_t cols) {
    return (struct tensor_shape){
        .name = name, .role = role, .planes = planes, .rows = rows, .cols = cols};
}

/// Keys and values hold the cache.
static size_t buffers(const struct problem *problem, const struct op_pipeline *pipeline,
                      struct tensor_shape shapes[OP_BUFFERS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    const struct mha_places at = mha_places(problem);
    const bool fused = pipeline == &pipelines[FUSED];
    const size_t depth = mha_depth(problem), tokens = mha_tokens(problem);
    const size_t heads = s->batch * s->heads, kv_heads = s->batch * s->kv_heads;
    const size_t queries = s->seq_q, keys = s->seq_kv, dim = s->head_dim;
    const enum tensor_role out = TENSOR_OUTPUT;
    shapes[ADDED] = buffer("x + position", out, at.added ? 1 : 0, tokens, depth);
    shapes[PROJECTED] = buffer("q, k, v of all heads", out, 1, tokens, mha_outputs(problem));
    shapes[Q_RAW] = buffer("q, not rotated", out, at.angles ? heads : 0, queries, dim);
    shapes[K_RAW] = buffer("k, not rotated", out, at.angles ? kv_heads : 0, queries, dim);
    shapes[Q] = buffer("q", out, heads, queries, dim);
    shapes[K] = buffer("k", TENSOR_INPUT, kv_heads, keys, dim);
    shapes[V] = buffer("v", TENSOR_INPUT, kv_heads, keys, dim);
    shapes[SCORES] = buffer("scores", out, fused ? 0 : heads, queries, keys);
    shapes[WEIGHTS] = buffer("weights", out, fused ? 0 : heads, queries, keys);
    shapes[CONTEXT] = buffer("contexts", out, heads, queries, dim);
    shapes[JOINED] = buffer("contexts side by side", out, 1, tokens, depth);
    return BUFFERS;
}

static void copy_rows(const struct tensor *to, const struct tensor *from) {
    for (size_t p = 0; p < from->shape.planes; p++) {
        for (size_t r = 0; r < from->shape.rows; r++) {
            memcpy(tensor_row(to, p, r), tensor_row(from, p, r), from->shape.cols * sizeof(float));
        }
    }
}

static void prime(const struct problem *problem, const struct tensor *tensors_of,
                  const struct tensor *buffers_of) {
    const struct mha_places at = mha_places(problem);
    if (at.past_k) {
        copy_rows(&buffers_of[K], &tensors_of[at.past_k]);
        copy_rows(&buffers_of[V], &tensors_of[at.past_v]);
    }
}

/// A pipeline under construction.
struct composing {
    const struct problem *problem;
    bool views;  ///< Tensors are there.
    struct op_step *steps;
    size_t count;
};

/// Adds a step on a shape; positions and masks are those of the layer, where the op has them.
static struct tensor *add(struct composing *c, const char *op, struct mha_shape shape) {
    struct op_step *step = &c->steps[c->count++];
    step->driver = op_find(op);
    step->problem = *c->problem;
    step->problem.op = step->driver->name;
    step->problem.shape = shape;
    if (!step->driver->has_mask) {
        step->problem.mask = MHA_MASK_NONE;
        step->problem.window = 0;
    }
    if (!(step->driver->positions >> step->problem.position.kind & 1u)) {
        step->problem.position = (struct position){.kind = POSITION_NONE};
    }
    step->driver->normalise(&step->problem);
    return c->views ? step->tensors : NULL;
}

/// The tokens of a flat tensor by sequence, `cols` columns from `first` on.
static struct tensor by_sequence(const struct composing *c, const struct tensor *flat, size_t first,
                                 size_t cols) {
    struct tensor view = *flat;
    view.shape.planes = c->problem->shape.batch;
    view.shape.rows = c->problem->shape.seq_q;
    view.shape.cols = cols;
    view.data = (float *)view.data + first;
    view.plane_stride = view.shape.rows * view.row_stride;
    return view;
}

/// The rows of the new tokens in keys or values.
static struct tensor behind_past(const struct composing *c, const struct tensor *all) {
    struct tensor view = *all;
    view.shape.rows = c->problem->shape.seq_q;
    view.data = tensor_row(&view, 0, mha_past(c->problem));
    return view;
}

/// Splits one of the three projections, `first` its first column, and rotates its heads when there
/// is a buffer for them as they were.
static void add_heads(struct composing *c, const struct tensor *t, const struct tensor *projected,
                      size_t first, size_t heads, const struct tensor *raw,
                      const struct tensor *to) {
    const struct mha_shape *s = &c->problem->shape;
    const struct mha_places at = mha_places(c->problem);
    const struct mha_shape shape = {s->batch, heads, heads, s->seq_q, s->seq_q, s->head_dim};
    struct tensor *split = add(c, "split", shape);
    if (split) {
        split[0] = by_sequence(c, projected, first, heads * s->head_dim);
        split[1] = raw ? *raw : *to;
    }
    struct tensor *rope =
        at.angles && first < (s->heads + s->kv_heads) * s->head_dim ? add(c, "rope", shape) : NULL;
    if (rope) {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): with views and angles there is one
        rope[0] = *raw;
        rope[1] = t[at.angles];
        rope[2] = *to;
    }
}

static void add_unfused(struct composing *c, const struct tensor *t, const struct tensor *b) {
    const struct mha_shape shape = c->problem->shape;
    const struct mha_places at = mha_places(c->problem);
    size_t scores = SCORES, other = WEIGHTS;
    struct tensor *qk = add(c, "qk", shape);
    if (qk) {
        qk[0] = b[Q];
        qk[1] = b[K];
        qk[2] = b[scores];
    }
    struct tensor *bias = at.bias ? add(c, "bias", shape) : NULL;
    if (bias) {
        bias[0] = b[scores];
        bias[1] = t[at.bias];
        bias[2] = b[other];
    }
    if (at.bias) {
        scores = WEIGHTS;
        other = SCORES;
    }
    struct tensor *softmax = add(c, "softmax", shape);
    if (softmax) {
        softmax[0] = b[scores];
        softmax[1] = b[other];
    }
    struct tensor *pv = add(c, "pv", shape);
    if (pv) {
        pv[0] = b[other];
        pv[1] = b[V];
        pv[2] = b[CONTEXT];
    }
}

static void add_fused(struct composing *c, const struct tensor *t, const struct tensor *b) {
    const struct mha_places at = mha_places(c->problem);
    struct tensor *sdpa = add(c, "sdpa", c->problem->shape);
    if (sdpa) {
        size_t count = 0;
        sdpa[count++] = b[Q];
        sdpa[count++] = b[K];
        sdpa[count++] = b[V];
        if (at.bias) {
            sdpa[count++] = t[at.bias];
        }
        sdpa[count] = b[CONTEXT];
    }
}

static size_t compose(const struct problem *problem, const struct op_pipeline *pipeline,
                      const struct tensor *t, const struct tensor *b,
                      struct op_step steps[OP_STEPS_MAX]) {
    struct composing c = {problem, t != NULL, steps, 0};
    const struct mha_shape *s = &problem->shape;
    const struct mha_places at = mha_places(problem);
    const size_t depth = mha_depth(problem), kv_cols = s->kv_heads * s->head_dim;
    struct tensor *sum = at.added ? add(&c, "sinusoid", *s) : NULL;
    if (sum) {
        sum[0] = by_sequence(&c, &t[at.x], 0, depth);
        sum[1] = t[at.added];
        sum[2] = by_sequence(&c, &b[ADDED], 0, depth);
    }
    struct tensor *project = add(&c, "qkv_proj", *s);
    if (project) {
        project[0] = at.added ? b[ADDED] : t[at.x];
        project[1] = t[at.w_qkv];
        project[2] = b[PROJECTED];
    }
    struct tensor k = {0}, v = {0};
    const struct tensor *projected = NULL, *q = NULL, *q_raw = NULL, *k_raw = NULL;
    if (c.views) {
        projected = &b[PROJECTED];
        q = &b[Q];
        q_raw = at.angles ? &b[Q_RAW] : NULL;
        k_raw = at.angles ? &b[K_RAW] : NULL;
        k = behind_past(&c, &b[K]);
        v = behind_past(&c, &b[V]);
    }
    add_heads(&c, t, projected, 0, s->heads, q_raw, q);
    add_heads(&c, t, projected, depth, s->kv_heads, k_raw, &k);
    add_heads(&c, t, projected, depth + kv_cols, s->kv_heads, NULL, &v);
    if (pipeline == &pipelines[FUSED]) {
        add_fused(&c, t, b);
    } else {
        add_unfused(&c, t, b);
    }
    struct tensor *join = add(&c, "concat", *s);
    if (join) {
        join[0] = b[CONTEXT];
        join[1] = by_sequence(&c, &b[JOINED], 0, depth);
    }
    struct tensor *out = add(&c, "out_proj", *s);
    if (out) {
        out[0] = b[JOINED];
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): with views there are tensors
        out[1] = t[at.w_out];
        out[2] = t[at.y];
    }
    return c.count;
}

// --- the account
// ---------------------------------------------------------------------------------------

/// Whether no query sees any key: all results are zeros then.
static bool trivial(const struct problem *problem) {
    return visible_pairs(problem) == 0;
}

/// The products of the four projections and of the attention.
static double flops(const struct problem *problem) {
    const double depth = (double)mha_depth(problem);
    return 2 * (double)mha_tokens(problem) * depth * ((double)mha_outputs(problem) + depth) +
           4 * visible_pairs(problem) * depth;
}

/// X, the weights and the cache in, Y out; what the steps hand on need not leave the caches.
static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    const double depth = (double)mha_depth(problem), tokens = (double)mha_tokens(problem);
    const double past = (double)(s->batch * s->kv_heads * mha_past(problem) * s->head_dim);
    *read = 4 * (tokens * depth + depth * ((double)mha_outputs(problem) + depth) + 2 * past);
    *written = 4 * tokens * depth;
}

/// What provokes a kernel's lanes and tails is its own op's.
/// Two whose tokens differ come first: where all tokens are alike, so are their values, and no
/// weight of attention can be told from another. One class alone may miss a way of cutting into
/// items.
static const char *const classes[] = {"normal", "uniform",  "equal",    "ramp",
                                      "cancel", "denormal", "negative", NULL};

const struct op_driver op_mha = {
    .name = "mha",
    .rank = 95,
    .has_mask = true,
    .positions = 1u << POSITION_NONE | 1u << POSITION_SINUSOID | 1u << POSITION_LEARNED |
                 1u << POSITION_ROPE | 1u << POSITION_ALIBI | 1u << POSITION_T5,
    .default_positions = "none",
    .compute = true,
    .mix = "read",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = normalise,
    .tensors = tensors,
    .fill = fill,
    .oracle_rows = mha_oracle_rows,
    .trivial = trivial,
    .flops = flops,
    .bytes = bytes,
    .pipelines = pipelines,
    .buffers = buffers,
    .prime = prime,
    .compose = compose,
};
