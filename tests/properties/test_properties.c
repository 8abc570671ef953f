/// Properties that the literature states of attention, as tests of every kernel that runs here. A
/// tolerance is what the drivers derive for the results that are compared; where a property says
/// "the same bits" it means that. Each property is shown to fail for a kernel that breaks it.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cast.h"
#include "data.h"
#include "diag.h"
#include "wrong.h"

/// Unit roundoff of float and double.
#define U 0x1p-24
#define U_DOUBLE 0x1p-53

/// The layers' shape, with a tail in every direction; wrong.c knows HEAD_DIM.
enum { HEADS = 3, HEAD_DIM = 20, TOKENS = 17 };

/// Two problems that are compared.
struct pair {
    struct scene a, b;
};

static void pair_judge(struct pair *pair) {
    scene_judge(&pair->a);
    scene_judge(&pair->b);
}

static void pair_run(struct pair *pair, const struct mha_kernel *kernel) {
    scene_run(&pair->a, kernel);
    scene_run(&pair->b, kernel);
}

static void pair_free(struct pair *pair) {
    scene_free(&pair->a);
    scene_free(&pair->b);
}

static bool same_bits(const struct scene *a, const struct scene *b, size_t plane, size_t row) {
    const struct tensor *y = stage_output(&a->stage);
    return memcmp(tensor_row(y, plane, row), tensor_row(stage_output(&b->stage), plane, row),
                  y->shape.cols * sizeof(float)) == 0;
}

// --- the order of the tokens
// ------------------------------------------------------------------------------

/// Makes a layer over `tokens` tokens, and over the same in another order: b's token t is a's
/// order[t].
static void make_orders(struct pair *pair, size_t tokens, const char *position,
                        const size_t *order) {
    const struct problem problem = layer_problem(HEADS, HEADS, HEAD_DIM, tokens, position, "none");
    scene_make(&pair->a, &problem);
    scene_make(&pair->b, &problem);
    for (size_t t = 0; t < tokens; t++) {
        memcpy(stage_row(&pair->b.stage, 0, 0, t), stage_row(&pair->a.stage, 0, 0, order[t]),
               sizeof(float) * HEADS * HEAD_DIM);
    }
    pair_judge(pair);
}

struct orders {
    struct pair pair;
    size_t tokens;
    const size_t *order;
};

/// Whether the output is reordered as the input is.
static bool permutes(struct orders *o, const struct mha_kernel *layer) {
    pair_run(&o->pair, layer);
    for (size_t t = 0; t < o->tokens; t++) {
        if (!scene_rows_agree(&o->pair.b, t, &o->pair.a, o->order[t])) {
            return false;
        }
    }
    return true;
}

/// Whether the other order gives a vector that this one does not.
static bool tells_order(struct orders *o, const struct mha_kernel *layer) {
    pair_run(&o->pair, layer);
    for (size_t t = 0; t < o->tokens; t++) {
        bool known = false;
        for (size_t other = 0; other < o->tokens && !known; other++) {
            known = scene_rows_agree(&o->pair.b, t, &o->pair.a, other);
        }
        if (!known) {
            return true;
        }
    }
    return false;
}

static void expect_permutes(void *context, const struct mha_kernel *layer, const char *kernel) {
    if (!permutes(context, layer)) {
        fail_msg("%s with %s: without positions the order of the tokens shows", layer->name,
                 kernel);
    }
}

static void expect_tells_order(void *context, const struct mha_kernel *layer, const char *kernel) {
    struct orders *o = context;
    if (!tells_order(o, layer)) {
        char position[32];
        problem_position_text(position, &o->pair.a.stage.problem);
        fail_msg("%s with %s: with %s the order of the tokens does not show", layer->name, kernel,
                 position);
    }
}

/// "Dog bites man" and "man bites dog".
static const size_t reversed[] = {2, 1, 0};
/// "Bites man dog".
static const size_t turned[] = {1, 2, 0};

static void tokens_are_a_set(void **state) {
    (void)state;
    size_t mixed[TOKENS];
    for (size_t t = 0; t < TOKENS; t++) {
        mixed[t] = (5 * t + 3) % TOKENS;
    }
    struct orders orders[] = {{.tokens = 3, .order = reversed}, {.tokens = TOKENS, .order = mixed}};
    for (size_t i = 0; i < 2; i++) {
        struct orders *o = &orders[i];
        make_orders(&o->pair, o->tokens, "none", o->order);
        layer_for_each(&o->pair.a.stage.problem, expect_permutes, o);
        assert_false(permutes(o, layer_with_wrong("qk_f32_scalar_by_place")));
        pair_free(&o->pair);
    }
}

static void positions_tell_order(void **state) {
    (void)state;
    static const struct {
        const char *position;
        const size_t *order;
        const char *wrong;
    } cases[] = {
        {"sinusoid", reversed, "sinusoid_f32_scalar_absent"},
        {"learned", reversed, "sinusoid_f32_scalar_absent"},
        {"rope", reversed, "rope_f32_scalar_still"},
        {"rope:half", reversed, "rope_f32_scalar_still"},
        {"t5", reversed, "bias_f32_scalar_absent"},
        {"alibi", turned, "bias_f32_scalar_absent"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct orders o = {.tokens = 3, .order = cases[i].order};
        make_orders(&o.pair, o.tokens, cases[i].position, o.order);
        layer_for_each(&o.pair.a.stage.problem, expect_tells_order, &o);
        assert_false(tells_order(&o, layer_with_wrong(cases[i].wrong)));
        pair_free(&o.pair);
    }
}

/// ALiBi without a mask knows how far apart tokens are, and not which comes first: a sentence
/// spelt backwards gives the same vectors.
static void alibi_is_symmetric(void **state) {
    (void)state;
    struct orders o = {.tokens = 3, .order = reversed};
    make_orders(&o.pair, o.tokens, "alibi", o.order);
    layer_for_each(&o.pair.a.stage.problem, expect_permutes, &o);
    assert_false(permutes(&o, layer_with_wrong("qk_f32_scalar_by_place")));
    pair_free(&o.pair);
}

// --- the future
// -----------------------------------------------------------------------------------------

/// First token that differs.
enum { CHANGED = 9 };

/// Whether a causal layer's output is the same, bit for bit, before the first token that differs,
/// and is not from there on.
static bool ignores_future(struct pair *pair, const struct mha_kernel *layer) {
    pair_run(pair, layer);
    for (size_t t = 0; t < TOKENS; t++) {
        if (same_bits(&pair->a, &pair->b, 0, t) != (t < CHANGED)) {
            return false;
        }
    }
    return true;
}

static void expect_ignores_future(void *context, const struct mha_kernel *layer,
                                  const char *kernel) {
    if (!ignores_future(context, layer)) {
        fail_msg("%s with %s: a token changes what stands before it, or nothing", layer->name,
                 kernel);
    }
}

static void future_is_not_seen(void **state) {
    (void)state;
    static const char *const positions[] = {"none", "sinusoid", "rope", "alibi", "t5:causal"};
    for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
        struct pair pair;
        const struct problem problem =
            layer_problem(HEADS, HEADS, HEAD_DIM, TOKENS, positions[i], "causal");
        scene_make(&pair.a, &problem);
        scene_make(&pair.b, &problem);
        for (size_t t = CHANGED; t < TOKENS; t++) {
            for (size_t c = 0; c < HEADS * HEAD_DIM; c++) {
                stage_row(&pair.b.stage, 0, 0, t)[c] *= -3;
            }
        }
        layer_for_each(&problem, expect_ignores_future, &pair);
        assert_false(ignores_future(&pair, layer_with_wrong("softmax_f32_scalar_unmasked")));
        pair_free(&pair);
    }
}

// --- softmax
// --------------------------------------------------------------------------------------------

/// Whether every row that sees a key sums to 1, and every other to 0. The weights may each be off
/// by their bound; the sum is taken in double, as was that of the oracle's weights.
static bool sums_to_one(struct scene *s, const struct mha_kernel *kernel) {
    const struct tensor *y = stage_output(&s->stage);
    scene_run(s, kernel);
    for (size_t p = 0; p < y->shape.planes; p++) {
        const struct mha_mask mask =
            problem_mask(&s->stage.problem, p / s->stage.problem.shape.heads);
        for (size_t r = 0; r < y->shape.rows; r++) {
            const struct mha_span span = mha_row_span(&mask, r);
            double sum = 0, bound = 4 * (double)y->shape.cols * U_DOUBLE;
            for (size_t c = 0; c < y->shape.cols; c++) {
                sum += (double)tensor_row(y, p, r)[c];
                bound += scene_bound(s, p, r, c);
            }
            if (!(fabs(sum - (span.begin < span.end ? 1 : 0)) <= bound)) {
                return false;
            }
        }
    }
    return true;
}

static void expect_sums_to_one(void *context, const struct mha_kernel *kernel) {
    if (!sums_to_one(context, kernel)) {
        fail_msg("%s: a row does not sum to 1", kernel->name);
    }
}

static void softmax_sums_to_one(void **state) {
    (void)state;
    static const char *const masks[] = {"none", "causal", "lengths", "window:5"};
    static const size_t keys[] = {3, 7, 64, 131};
    for (size_t i = 0; i < 16; i++) {
        struct problem problem = {
            .op = "softmax", .dtype = "f32", .shape = {2, 2, 2, 9, keys[i / 4], HEAD_DIM}};
        struct scene scene;
        assert_true(problem_mask_parse(&problem, masks[i % 4]));
        scene_make(&scene, &problem);
        scene_judge(&scene);
        kernel_for_each("softmax", expect_sums_to_one, &scene);
        assert_false(sums_to_one(&scene, wrong_kernel("softmax_f32_scalar_undivided")));
        scene_free(&scene);
    }
}

// --- RoPE and distances
// -----------------------------------------------------------------------------------

enum { PLACES = 40, PAIRS = HEAD_DIM / 2 };

/// One query and one key at every place: plane 0 of rope's problem holds the query in every row,
/// plane 1 the key. Their scores are qk's problem.
struct places {
    struct scene rope, qk;
    const struct mha_kernel *qk_kernel, *rope_kernel;  ///< The one that is not looked at.
};

/// What a rotated element may be off: its own rounding, that of the cosine and sine, half a unit
/// in the last place of a number below 1, and of the angle, a double of at most PLACES with three
/// roundings.
static double rotated_bound(const struct places *s, size_t plane, size_t row, size_t i) {
    const float *x = stage_row(&s->rope.stage, 0, plane, row);
    const size_t other = s->rope.stage.problem.position.half ? (i + PAIRS) % HEAD_DIM : i ^ 1;
    const double table = U / 2 + 3 * PLACES * U_DOUBLE;
    return scene_bound(&s->rope, plane, row, i) +
           table * (fabs((double)x[i]) + fabs((double)x[other]));
}

/// Whether all scores of one distance are one number.
static bool knows_distance_only(struct places *s, const struct mha_kernel *rope,
                                const struct mha_kernel *qk) {
    const struct tensor *rotated = stage_output(&s->rope.stage);
    scene_run(&s->rope, rope);
    for (size_t p = 0; p < 2; p++) {
        for (size_t r = 0; r < PLACES; r++) {
            memcpy(stage_row(&s->qk.stage, p, 0, r), tensor_row(rotated, p, r),
                   HEAD_DIM * sizeof(float));
        }
    }
    scene_judge(&s->qk);
    scene_run(&s->qk, qk);
    // A score is off by qk's bound, and by what its factors are off.
    static double bound[PLACES][PLACES];
    const double scale = 1 / sqrt(HEAD_DIM);
    for (size_t r = 0; r < PLACES; r++) {
        for (size_t c = 0; c < PLACES; c++) {
            bound[r][c] = scene_bound(&s->qk, 0, r, c);
            for (size_t i = 0; i < HEAD_DIM; i++) {
                const double q = fabs((double)tensor_row(rotated, 0, r)[i]);
                const double k = fabs((double)tensor_row(rotated, 1, c)[i]);
                const double dq = rotated_bound(s, 0, r, i), dk = rotated_bound(s, 1, c, i);
                bound[r][c] += scale * (dq * k + q * dk + dq * dk);
            }
        }
    }
    oracle_free(&s->qk.oracle);
    s->qk.judged = false;
    bool good = true;
    const struct tensor *scores = stage_output(&s->qk.stage);
    for (size_t r = 1; r < PLACES; r++) {
        for (size_t c = 1; c < PLACES; c++) {
            // The first pair of this distance.
            const size_t less = r < c ? r : c, r0 = r - less, c0 = c - less;
            const double apart =
                fabs((double)tensor_row(scores, 0, r)[c] - (double)tensor_row(scores, 0, r0)[c0]);
            good = good && apart <= bound[r][c] + bound[r0][c0];
        }
    }
    return good;
}

static void expect_rope_distance(void *context, const struct mha_kernel *kernel) {
    struct places *s = context;
    if (!knows_distance_only(s, kernel, s->qk_kernel)) {
        fail_msg("%s: scores of one distance differ", kernel->name);
    }
}

static void expect_qk_distance(void *context, const struct mha_kernel *kernel) {
    struct places *s = context;
    if (!knows_distance_only(s, s->rope_kernel, kernel)) {
        fail_msg("%s: scores of one distance differ", kernel->name);
    }
}

static void rope_knows_distance_only(void **state) {
    (void)state;
    static const char *const layouts[] = {"rope", "rope:half", "rope:half:500000"};
    for (size_t l = 0; l < 3; l++) {
        struct problem rope = {
            .op = "rope", .dtype = "f32", .shape = {1, 2, 2, PLACES, PLACES, HEAD_DIM}};
        const struct problem qk = {
            .op = "qk", .dtype = "f32", .shape = {1, 1, 1, PLACES, PLACES, HEAD_DIM}};
        struct places s = {.qk_kernel = stage_kernel("qk", 0),
                           .rope_kernel = stage_kernel("rope", 0)};
        assert_true(problem_position_parse(&rope, layouts[l]));
        scene_make(&s.rope, &rope);
        scene_make(&s.qk, &qk);
        for (size_t p = 0; p < 2; p++) {
            for (size_t r = 1; r < PLACES; r++) {
                memcpy(stage_row(&s.rope.stage, 0, p, r), stage_row(&s.rope.stage, 0, p, 0),
                       HEAD_DIM * sizeof(float));
            }
        }
        scene_judge(&s.rope);
        kernel_for_each("rope", expect_rope_distance, &s);
        kernel_for_each("qk", expect_qk_distance, &s);
        assert_false(knows_distance_only(&s, wrong_kernel("rope_f32_scalar_shrinks"), s.qk_kernel));
        assert_false(
            knows_distance_only(&s, s.rope_kernel, wrong_kernel("qk_f32_scalar_by_place")));
        scene_free(&s.rope);
        scene_free(&s.qk);
    }
}

// --- splitting and concatenating
// ----------------------------------------------------------------------------

struct round_trip {
    struct scene split, concat;
    const struct mha_kernel *split_kernel;
};

/// Whether what was split and concatenated has the bits that it had.
static bool comes_back(struct round_trip *s, const struct mha_kernel *split,
                       const struct mha_kernel *concat) {
    const struct tensor *apart = stage_output(&s->split.stage);
    const struct tensor *y = stage_output(&s->concat.stage);
    scene_run(&s->split, split);
    for (size_t p = 0; p < apart->shape.planes; p++) {
        for (size_t r = 0; r < apart->shape.rows; r++) {
            memcpy(stage_row(&s->concat.stage, 0, p, r), tensor_row(apart, p, r),
                   apart->shape.cols * sizeof(float));
        }
    }
    scene_run(&s->concat, concat);
    for (size_t p = 0; p < y->shape.planes; p++) {
        for (size_t r = 0; r < y->shape.rows; r++) {
            if (memcmp(stage_row(&s->split.stage, 0, p, r), tensor_row(y, p, r),
                       y->shape.cols * sizeof(float)) != 0) {
                return false;
            }
        }
    }
    return true;
}

static void expect_concat_back(void *context, const struct mha_kernel *concat) {
    struct round_trip *s = context;
    if (!comes_back(s, s->split_kernel, concat)) {
        fail_msg("%s behind %s: other bits come back", concat->name, s->split_kernel->name);
    }
}

static void expect_back(void *context, const struct mha_kernel *split) {
    struct round_trip *s = context;
    s->split_kernel = split;
    kernel_for_each("concat", expect_concat_back, s);
}

static void concat_undoes_split(void **state) {
    (void)state;
    static const size_t dims[] = {1, HEAD_DIM, 37, 64};
    for (size_t d = 0; d < sizeof(dims) / sizeof(dims[0]); d++) {
        const struct mha_shape shape = {2, HEADS, HEADS, TOKENS, TOKENS, dims[d]};
        const struct problem split = {.op = "split", .dtype = "f32", .shape = shape};
        const struct problem concat = {.op = "concat", .dtype = "f32", .shape = shape};
        struct round_trip s;
        scene_make(&s.split, &split);
        scene_make(&s.concat, &concat);
        stage_fill(&s.split.stage, "bits");
        kernel_for_each("split", expect_back, &s);
        assert_false(
            comes_back(&s, stage_kernel("split", 0), wrong_kernel("concat_f32_scalar_reversed")));
        scene_free(&s.split);
        scene_free(&s.concat);
    }
}

// --- the projections
// ----------------------------------------------------------------------------------------

static size_t rounded(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/// Runs a projection's kernel over the columns [first, first + cols) of a weight alone.
static void project_part(const struct scene *s, const struct mha_kernel *kernel, size_t first,
                         size_t cols, float *y) {
    const struct mha_shape *shape = &s->stage.problem.shape;
    const struct tensor *x = &s->stage.tensors[0], *w = &s->stage.tensors[1];
    const size_t packed_bytes = kernel->packed_bytes ? kernel->packed_bytes(shape) : 0;
    const size_t workspace_bytes = kernel->workspace_bytes ? kernel->workspace_bytes(shape) : 0;
    void *packed = diag_alloc(aligned_alloc(64, rounded(packed_bytes + 1)));
    void *workspace = diag_alloc(aligned_alloc(64, rounded(workspace_bytes + 1)));
    struct mha_proj_args args = {.rows = x->shape.rows,
                                 .depth = x->shape.cols,
                                 .cols = cols,
                                 .w = tensor_row(w, 0, 0) + first,
                                 .w_stride = w->row_stride};
    const bool fused = strcmp(kernel->op, "qkv_proj") == 0;
    if (kernel->packed_bytes) {
        (fused ? kernel->pack.qkv_proj : kernel->pack.out_proj)(&args, packed);
        args.packed = packed;
    }
    args.x = x->data;
    args.x_stride = x->row_stride;
    args.y = y;
    args.y_stride = cols;
    (fused ? kernel->run.qkv_proj : kernel->run.out_proj)(&args, workspace);
    free(packed);
    free(workspace);
}

/// Whether each head's columns, projected alone, are those of the whole projection: both are the
/// same sums, each within its bound.
static bool slices_agree(struct scene *s, const struct mha_kernel *kernel) {
    const struct tensor *y = stage_output(&s->stage);
    float part[TOKENS * HEAD_DIM];
    bool good = true;
    scene_run(s, kernel);
    for (size_t first = 0; first < y->shape.cols; first += HEAD_DIM) {
        project_part(s, kernel, first, HEAD_DIM, part);
        for (size_t i = 0; i < TOKENS * HEAD_DIM; i++) {
            const size_t row = i / HEAD_DIM, col = first + i % HEAD_DIM;
            const double apart = fabs((double)part[i] - (double)tensor_row(y, 0, row)[col]);
            good = good && apart <= 2 * scene_bound(s, 0, row, col);
        }
    }
    return good;
}

static void expect_slices(void *context, const struct mha_kernel *kernel) {
    // What a peer makes for one shape does not take another.
    if (kernel->create == NULL && !slices_agree(context, kernel)) {
        fail_msg("%s: a head projected alone differs from its slice", kernel->name);
    }
}

static void head_is_slice_of_projection(void **state) {
    (void)state;
    static const char *const ops[] = {"qkv_proj", "out_proj"};
    for (size_t i = 0; i < 2; i++) {
        const struct problem problem = {
            .op = ops[i], .dtype = "f32", .shape = {1, HEADS, HEADS, TOKENS, TOKENS, HEAD_DIM}};
        struct scene scene;
        scene_make(&scene, &problem);
        scene_judge(&scene);
        kernel_for_each(ops[i], expect_slices, &scene);
        if (i == 0) {
            assert_false(slices_agree(&scene, wrong_kernel("qkv_proj_f32_scalar_dense")));
        }
        scene_free(&scene);
    }
}

/// Whether another output of one head changes every column of the result.
static bool mixes_heads(struct pair *pair, const struct mha_kernel *kernel) {
    const struct tensor *y = stage_output(&pair->a.stage);
    pair_run(pair, kernel);
    for (size_t c = 0; c < y->shape.cols; c++) {
        bool changed = false;
        for (size_t r = 0; r < y->shape.rows; r++) {
            const float a = tensor_row(y, 0, r)[c];
            const float b = tensor_row(stage_output(&pair->b.stage), 0, r)[c];
            changed = changed || memcmp(&a, &b, sizeof(a)) != 0;
        }
        if (!changed) {
            return false;
        }
    }
    return true;
}

static void expect_mixes_heads(void *context, const struct mha_kernel *kernel) {
    if (!mixes_heads(context, kernel)) {
        fail_msg("%s: a column does not depend on a head", kernel->name);
    }
}

static void w_o_mixes_heads(void **state) {
    (void)state;
    const struct problem problem = {
        .op = "out_proj", .dtype = "f32", .shape = {1, HEADS, HEADS, TOKENS, TOKENS, HEAD_DIM}};
    for (size_t head = 0; head < HEADS; head++) {
        struct pair pair;
        scene_make(&pair.a, &problem);
        scene_make(&pair.b, &problem);
        for (size_t t = 0; t < TOKENS; t++) {
            for (size_t c = head * HEAD_DIM; c < (head + 1) * HEAD_DIM; c++) {
                stage_row(&pair.b.stage, 0, 0, t)[c] += 1;
            }
        }
        pair_judge(&pair);
        // The data is such that a right kernel's error cannot hide the change.
        for (size_t c = 0; c < HEADS * HEAD_DIM; c++) {
            const double apart = fabs(scene_want(&pair.a, 0, 0, c) - scene_want(&pair.b, 0, 0, c));
            assert_true(apart > scene_bound(&pair.a, 0, 0, c) + scene_bound(&pair.b, 0, 0, c));
        }
        kernel_for_each("out_proj", expect_mixes_heads, &pair);
        assert_false(mixes_heads(&pair, wrong_kernel("out_proj_f32_scalar_apart")));
        pair_free(&pair);
    }
}

// --- one head, and grouped heads
// ----------------------------------------------------------------------------

enum { WIDTH = HEADS * HEAD_DIM };

/// x[TOKENS][WIDTH] times columns [first, first + WIDTH) of w.
static void times(const double *x, const struct tensor *w, size_t first, double *y) {
    for (size_t t = 0; t < TOKENS; t++) {
        for (size_t j = 0; j < WIDTH; j++) {
            y[t * WIDTH + j] = 0;
            for (size_t i = 0; i < WIDTH; i++) {
                y[t * WIDTH + j] += x[t * WIDTH + i] * (double)tensor_row(w, 0, i)[first + j];
            }
        }
    }
}

/// softmax(X W_Q (X W_K)^T / sqrt(d)) X W_V W_O, in double and as it is written.
static void textbook(const struct scene *s, double *y) {
    static double x[TOKENS * WIDTH], q[TOKENS * WIDTH], k[TOKENS * WIDTH], v[TOKENS * WIDTH];
    static double head[TOKENS * WIDTH];
    const struct tensor *w = &s->stage.tensors[1];
    for (size_t i = 0; i < TOKENS * WIDTH; i++) {
        x[i] = (double)stage_row(&s->stage, 0, 0, i / WIDTH)[i % WIDTH];
        head[i] = 0;
    }
    times(x, w, 0, q);
    times(x, w, WIDTH, k);
    times(x, w, 2 * WIDTH, v);
    for (size_t t = 0; t < TOKENS; t++) {
        double weight[TOKENS], sum = 0;
        for (size_t j = 0; j < TOKENS; j++) {
            double score = 0;
            for (size_t i = 0; i < WIDTH; i++) {
                score += q[t * WIDTH + i] * k[j * WIDTH + i];
            }
            weight[j] = exp(score / sqrt(WIDTH));
            sum += weight[j];
        }
        for (size_t i = 0; i < TOKENS * WIDTH; i++) {
            head[t * WIDTH + i % WIDTH] += weight[i / WIDTH] / sum * v[i];
        }
    }
    times(head, &s->stage.tensors[2], 0, y);
}

struct one_head {
    struct scene scene;
    double want[TOKENS * WIDTH];
};

static bool is_textbook(struct one_head *o, const struct mha_kernel *layer) {
    bool good = true;
    scene_run(&o->scene, layer);
    for (size_t i = 0; i < TOKENS * WIDTH; i++) {
        const float got = tensor_row(stage_output(&o->scene.stage), 0, i / WIDTH)[i % WIDTH];
        good = good &&
               fabs((double)got - o->want[i]) <= scene_bound(&o->scene, 0, i / WIDTH, i % WIDTH);
    }
    return good;
}

static void expect_textbook(void *context, const struct mha_kernel *layer, const char *kernel) {
    if (!is_textbook(context, layer)) {
        fail_msg("%s with %s: not what the formula gives", layer->name, kernel);
    }
}

static void one_head_is_the_formula(void **state) {
    (void)state;
    const struct problem problem = layer_problem(1, 1, WIDTH, TOKENS, "none", "none");
    static struct one_head o;
    scene_make(&o.scene, &problem);
    scene_judge(&o.scene);
    textbook(&o.scene, o.want);
    layer_for_each(&problem, expect_textbook, &o);
    assert_false(is_textbook(&o, layer_with_wrong("qk_f32_scalar_unscaled")));
    scene_free(&o.scene);
}

/// Whether two layers' outputs agree row by row.
static bool rows_agree(struct pair *pair, const struct mha_kernel *layer) {
    pair_run(pair, layer);
    for (size_t t = 0; t < TOKENS; t++) {
        if (!scene_rows_agree(&pair->a, t, &pair->b, t)) {
            return false;
        }
    }
    return true;
}

static void expect_rows_agree(void *context, const struct mha_kernel *layer, const char *kernel) {
    if (!rows_agree(context, layer)) {
        fail_msg("%s with %s: grouped heads differ from heads with repeated keys and values",
                 layer->name, kernel);
    }
}

static void grouped_heads_are_repeated_ones(void **state) {
    (void)state;
    enum { Q_HEADS = 4, DEPTH = Q_HEADS * HEAD_DIM };
    static const size_t groups[] = {1, 2, Q_HEADS};
    for (size_t g = 0; g < 3; g++) {
        const size_t kv_heads = groups[g], share = Q_HEADS / kv_heads;
        const struct problem grouped =
            layer_problem(Q_HEADS, kv_heads, HEAD_DIM, TOKENS, "none", "causal");
        const struct problem repeated =
            layer_problem(Q_HEADS, Q_HEADS, HEAD_DIM, TOKENS, "none", "causal");
        struct pair pair;
        scene_make(&pair.a, &grouped);
        scene_make(&pair.b, &repeated);
        for (size_t i = 0; i < DEPTH; i++) {
            const float *from = stage_row(&pair.a.stage, 1, 0, i);
            float *to = stage_row(&pair.b.stage, 1, 0, i);
            memcpy(to, from, DEPTH * sizeof(float));
            for (size_t h = 0; h < 2 * Q_HEADS; h++) {
                // Keys first, then values.
                const size_t kind = h / Q_HEADS, kv = h % Q_HEADS / share;
                memcpy(to + DEPTH + h * HEAD_DIM, from + DEPTH + (kind * kv_heads + kv) * HEAD_DIM,
                       HEAD_DIM * sizeof(float));
            }
        }
        pair_judge(&pair);
        layer_for_each(&grouped, expect_rows_agree, &pair);
        if (share > 1) {
            assert_false(rows_agree(&pair, layer_with_wrong("qk_f32_scalar_first_head")));
        }
        pair_free(&pair);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_a_set),
        cmocka_unit_test(positions_tell_order),
        cmocka_unit_test(alibi_is_symmetric),
        cmocka_unit_test(future_is_not_seen),
        cmocka_unit_test(softmax_sums_to_one),
        cmocka_unit_test(rope_knows_distance_only),
        cmocka_unit_test(concat_undoes_split),
        cmocka_unit_test(head_is_slice_of_projection),
        cmocka_unit_test(w_o_mixes_heads),
        cmocka_unit_test(one_head_is_the_formula),
        cmocka_unit_test(grouped_heads_are_repeated_ones),
    };
    return cmocka_run_group_tests_name("properties", tests, NULL, NULL);
}
