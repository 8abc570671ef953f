/// sdpa: attention in one kernel, from Q, K and V to the output, per head.
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "diag.h"
#include "op.h"
#include "position_tables.h"
#include "stats.h"
#include "visible.h"

static void normalise(struct problem *problem) {
    (void)problem;  // every axis of the shape matters
}

static size_t group(const struct problem *problem) {
    return problem->shape.heads / problem->shape.kv_heads;
}

static float scale_of(const struct problem *problem) {
    return 1.0f / sqrtf((float)problem->shape.head_dim);
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    size_t count = 3;
    shapes[0] = (struct tensor_shape){.name = "q",
                                      .role = TENSOR_INPUT,
                                      .planes = s->batch * s->heads,
                                      .rows = s->seq_q,
                                      .cols = s->head_dim,
                                      .element = problem_element(problem)};
    shapes[1] = (struct tensor_shape){.name = "k",
                                      .role = TENSOR_INPUT,
                                      .planes = s->batch * s->kv_heads,
                                      .rows = s->seq_kv,
                                      .cols = s->head_dim,
                                      .element = problem_element(problem)};
    shapes[2] = shapes[1];
    shapes[2].name = "v";
    count += position_bias_tensor(problem, &shapes[3]);
    shapes[count] = shapes[0];
    shapes[count].name = "o";
    shapes[count].role = TENSOR_OUTPUT;
    shapes[count].element = ELEMENT_F32;
    return count + 1;
}

static void fill(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows) {
    (void)index;
    (void)plane;
    (void)first;
    if (rows > 0) {
        position_bias_fill(problem, tensor);
    }
}

static void grid(const struct problem *problem, size_t *planes, size_t *rows) {
    *planes = problem->shape.batch * problem->shape.kv_heads;
    *rows = problem->shape.seq_q;
}

/// The output's place among the tensors: behind that of the bias, where there is one.
static size_t output_of(const struct problem *problem) {
    struct tensor_shape unused;
    return position_bias_tensor(problem, &unused) ? 4 : 3;
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    const size_t first_head = item->plane * group(problem);
    const struct tensor *o = &t[output_of(problem)];
    args->sdpa = (struct mha_sdpa_args){
        .heads = group(problem),
        .rows = item->rows,
        .first_row = item->first_row,
        .seq_kv = problem->shape.seq_kv,
        .head_dim = problem->shape.head_dim,
        .mask = problem_mask(problem, item->plane / problem->shape.kv_heads),
        .bias = position_bias(problem, first_head % problem->shape.heads, &t[3]),
        .q = tensor_at(&t[0], first_head, item->first_row),
        .q_head_stride = t[0].plane_stride,
        .q_stride = t[0].row_stride,
        .k = tensor_at(&t[1], item->plane, 0),
        .k_stride = t[1].row_stride,
        .v = tensor_at(&t[2], item->plane, 0),
        .v_stride = t[2].row_stride,
        .o = tensor_row(o, first_head, item->first_row),
        .o_head_stride = o->plane_stride,
        .o_stride = o->row_stride,
        .scale = scale_of(problem),
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.sdpa(&args->sdpa, workspace);
}

static void pack(const struct mha_kernel *kernel, const union mha_args *args, void *packed) {
    kernel->pack.sdpa(&args->sdpa, packed);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    args->sdpa.packed = packed;
    args->sdpa.state = state;
}

/// One query's visible keys in double precision.
struct row {
    size_t count;     ///< Visible keys, n.
    double *score;    ///< s_j
    double *slack;    ///< Largest error of a computed score.
    double *below;    ///< g_j = m - s_j
    double *weight;   ///< w_j
    double *spread;   ///< eps_j: largest |log| of a computed exponential over the exact one.
    size_t *greater;  ///< Scratch of rescalings().
    size_t *length;   ///< Likewise.
    size_t top;       ///< A key of the largest score, m.
    const float **v;  ///< The keys' values; behind them, at `wide`, those that had to be widened.
    float *wide;
};

static struct row row_make(size_t count, size_t dim) {
    double *const reals = diag_alloc(calloc(5 * count + 1, sizeof(*reals)));
    size_t *const sizes = diag_alloc(calloc(2 * count + 1, sizeof(*sizes)));
    return (struct row){count,
                        reals,
                        reals + count,
                        reals + 2 * count,
                        reals + 3 * count,
                        reals + 4 * count,
                        sizes,
                        sizes + count,
                        0,
                        diag_alloc(calloc(count + 1, sizeof(const float *))),
                        diag_alloc(calloc(count * dim + 1, sizeof(float)))};
}

static void row_free(struct row *row) {
    free(row->score);
    free(row->greater);
    free(row->v);
    free(row->wide);
}

/// Computes scores and their slacks; see the derivation below.
static void scores_of(const struct problem *problem, const struct tensor *t, size_t plane,
                      size_t index, size_t first, struct row *row) {
    const size_t dim = problem->shape.head_dim;
    const double u = 0x1p-24, scale = (double)scale_of(problem);
    const double n = (double)(dim + 2);
    const double gamma = n * u / (1 - n * u) + n * 0x1p-53;
    const struct mha_bias bias = position_bias(problem, plane % problem->shape.heads, &t[3]);
    float *scratch = diag_alloc(calloc(2 * dim, sizeof(*scratch)));
    const float *q = tensor_floats(&t[0], plane, index, scratch);
    double q_sum = 0;
    for (size_t i = 0; i < dim; i++) {
        q_sum += fabs((double)q[i]);
    }
    for (size_t j = 0; j < row->count; j++) {
        const float *k = tensor_floats(&t[1], plane / group(problem), first + j, scratch + dim);
        double sum = 0, magnitude = 0, k_sum = 0;
        for (size_t i = 0; i < dim; i++) {
            const double product = (double)q[i] * (double)k[i];
            sum += product;
            magnitude += fabs(product);
            k_sum += fabs((double)k[i]);
        }
        const double added = position_bias_at(&bias, 0, index, first + j);
        row->score[j] = sum * scale + added;
        row->slack[j] =
            gamma * magnitude * scale + 0x1p-126 * (2 * n + q_sum + k_sum) * (1 + scale);
        if (bias.kind != MHA_BIAS_NONE) {
            row->slack[j] += 2 * u * (fabs(row->score[j]) + row->slack[j] + fabs(added)) + 0x1p-125;
        }
    }
    free(scratch);
}

/// Gets how often the running maximum can grow at most once an element is in the sum, when keys are
/// taken in ascending order from any one on: the longest chain of keys each of which exceeds the
/// one before it, or may do so in rounded scores, and is the next to do so. Any larger block of
/// keys at a time only skips members of the chain.
static size_t rescalings(const struct row *row, double tolerance) {
    size_t *const stack = row->greater;  // keys behind the current one that exceed all between
    size_t depth = 0, longest = 0;
    for (size_t j = row->count; j-- > 0;) {
        while (depth > 0 && row->score[stack[depth - 1]] <= row->score[j] - tolerance) {
            depth--;
        }
        row->length[j] = depth > 0 ? row->length[stack[depth - 1]] + 1 : 0;
        longest = row->length[j] > longest ? row->length[j] : longest;
        while (depth > 0 && row->score[stack[depth - 1]] <= row->score[j]) {
            depth--;
        }
        stack[depth++] = j;
    }
    return longest;
}

/// The bound, with u = 2^-24, n visible keys, s_j their exact scores, m the largest, g_j = m - s_j,
/// w_j = exp(s_j) / sum_k exp(s_k) and o_i = sum_j w_j v_ji.
///
/// Scores. |s'_j - s_j| <= slack_j: gamma_(head_dim + 2) scale sum_i |q_i k_ji| (Higham, Accuracy
/// and Stability of Numerical Algorithms, 2nd ed., eq. 3.5; the scale as in qk) and what flushing
/// costs; a bias adds u |b_j| for its own product and u for its sum with the score.
///
/// Exponentials. A kernel keeps e_j = exp(s'_j - r), r being the largest score so far, and
/// multiplies what it has by exp(r - r') when r grows to r'. The logarithm of the product of all
/// factors of key j is s_j - r_last but for
///   slack_j;
///   the roundings of the distances s'_j - r, r - r', ...: u times each; the distances are all of
///     one sign and add up to m' - s'_j <= g_j + 2 max slack. Exponentials to base 2 have a factor
///     of log2(e) whose rounding costs as much once more;
///   4 ULP, 8 u, of each exponential and u of each product with the sums: 9 u for each of the R
///     times that r can grow, 8 u for the first exponential. R is at most what rescalings() counts,
///     and ceil(log2 n) more for ranges of keys that are merged in pairs.
/// Their sum is eps_j. r_last is common to all keys and cancels. The computed weights are w'_j =
/// w_j exp(t_j) / sum_k w_k exp(t_k), |t_j| <= eps_j, so |w'_j - w_j| <= w_j (exp(eps_j + L) - 1),
/// L = max(-log sum_k w_k exp(-eps_k), log sum_k w_k exp(eps_k)).
///
/// Where the slack is too large for that to say anything (scores of 10^30): with t a key of the
/// largest score the weight of any other key, exact or computed, is at most E_j = exp(eps_j + eps_t
/// - g_j) times that of t, so o_i and what is computed differ by at most 2 sum_j E_j |v_ji - v_ti|;
/// and both are means of the v_ji: by no more than max_j v_ji - min_j v_ji.
///
/// Sums. n products and n - 1 additions for the numerator, n - 1 for the denominator, in any order
/// (Higham, section 4.2), and 3 u for a quotient or a reciprocal and a product: gamma_(2n + 3) of
/// sum_j w'_j |v_ji|.
///
/// Flushing. The sum of the e_j is about 1 at least. An e_j, a product, a partial sum, a rescaled
/// sum, v_ji and the result may each be flushed, at 2^-126 times the cofactor: (3n + 2R + 2)
/// (1 + max_j |v_ji|) 2^-126, doubled for the divisor.
///
/// bf16 and f16 change nothing: q_i, k_ji and v_ji are taken as they are stored, every one of them
/// is a float, and what is computed of them is rounded as above; what vdpbf16ps rounds and flushes
/// in a score is in its slack, as in qk. There is no room for weights rounded to bf16 before their
/// product with v_ji: 2^-9 each.
///
/// The oracle's own double arithmetic: 2^-53 for 2^-24 in all of it, by (2n + 16) 2^-53 more.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t index, double *want, double *bound) {
    const double u = 0x1p-24;
    const size_t dim = problem->shape.head_dim;
    const struct mha_mask mask = problem_mask(problem, plane / problem->shape.heads);
    const struct mha_span span = mha_row_span(&mask, index);
    struct row row = row_make(span.end - span.begin, dim);
    scores_of(problem, t, plane, index, span.begin, &row);

    double max = -HUGE_VAL, slack = 0;
    bool poisoned = false;
    for (size_t j = 0; j < row.count; j++) {
        const double s = row.score[j];
        poisoned = poisoned || isnan(s) || (isinf(s) && s > 0);
        row.top = s > max ? j : row.top;
        max = s > max ? s : max;
        slack = isfinite(s) ? fmax(slack, row.slack[j]) : slack;
    }
    for (size_t i = 0; i < dim; i++) {
        want[i] = poisoned ? UNKNOWN : 0;
        bound[i] = 0x1p-126;
    }
    if (poisoned || isinf(max)) {
        row_free(&row);
        return;
    }

    for (size_t j = 0; j < row.count; j++) {
        row.v[j] = tensor_floats(&t[2], plane / group(problem), span.begin + j, row.wide + j * dim);
    }
    const double n = (double)row.count;
    const double grows = (double)rescalings(&row, 2 * slack) + ceil(log2(n));
    double sum = 0;
    for (size_t j = 0; j < row.count; j++) {
        const double factors = (8 + 9 * grows) * u;
        row.below[j] = max - row.score[j];
        row.weight[j] = exp(-row.below[j]);
        row.spread[j] = isinf(row.below[j]) ? 0  // no rounding makes anything of exp(-inf)
                                            : row.slack[j] + 2 * u * (row.below[j] + 2 * slack) +
                                                  factors / (1 - factors) + (2 * n + 16) * 0x1p-53;
        sum += row.weight[j];
    }
    double less = 0, more = 0;
    const double log_sum = log(sum);
    for (size_t j = 0; j < row.count; j++) {
        row.weight[j] /= sum;
        less += row.weight[j] * exp(-row.spread[j]);
        more += exp(row.spread[j] - row.below[j] - log_sum);
    }
    const double common = fmax(-log(less), log(more));
    const double chain = (2 * n + 3) * u;
    const double gamma = chain / (1 - chain) + (2 * n + 16) * 0x1p-53;

    for (size_t i = 0; i < dim; i++) {
        double magnitude = 0, relative = 0, decided = 0, low = HUGE_VAL, high = -HUGE_VAL;
        const double v_top = (double)row.v[row.top][i];
        for (size_t j = 0; j < row.count; j++) {
            const double v = (double)row.v[j][i];
            const double x = row.spread[j] + common;
            const double error = x < 1 ? row.weight[j] * expm1(x) : exp(x - row.below[j] - log_sum);
            want[i] += row.weight[j] * v;
            magnitude += row.weight[j] * fabs(v);
            relative += error * fabs(v);
            decided += j == row.top ? 0
                                    : exp(row.spread[j] + row.spread[row.top] - row.below[j]) *
                                          fabs(v - v_top);
            low = fmin(low, v);
            high = fmax(high, v);
        }
        // A NaN, of infinity times zero, says nothing: it is less than nothing else.
        double of_weights = high - low;
        of_weights = 2 * decided < of_weights ? 2 * decided : of_weights;
        of_weights = relative < of_weights ? relative : of_weights;
        const double largest = fmax(fabs(low), fabs(high));
        const double flushed = 2 * 0x1p-126 * (3 * n + 2 * grows + 2) * (1 + largest);
        if (isfinite(want[i])) {
            bound[i] = of_weights + gamma * (magnitude + of_weights) + flushed;
        }
    }
    row_free(&row);
}

/// Whether no query sees any key: all results are zeros then.
static bool trivial(const struct problem *problem) {
    return visible_pairs(problem) == 0;
}

static double flops(const struct problem *problem) {
    return 4 * visible_pairs(problem) * (double)problem->shape.heads *
           (double)problem->shape.head_dim;
}

static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    const double dim = (double)s->head_dim;
    const double rows = (double)(s->batch * s->heads) * (double)s->seq_q;
    *read = (double)element_bytes(problem_element(problem)) * dim *
            (rows + 2 * visible_keys(problem) * (double)s->kv_heads);
    *written = 4 * dim * rows;
}

static const char *const classes[] = {
    "normal",   "uniform",  "equal", "one_huge", "ramp",      "cancel", "denormal", "e30",
    "negative", "overflow", "nan",   "inf",      "minus_inf", "x30",    "x100",     NULL};

const struct op_driver op_sdpa = {
    .name = "sdpa",
    .rank = 75,
    .has_mask = true,
    .positions = 1u << POSITION_NONE | 1u << POSITION_ALIBI | 1u << POSITION_T5,
    .default_positions = "none",
    .compute = true,
    .elements = 1u << ELEMENT_F32 | 1u << ELEMENT_BF16 | 1u << ELEMENT_F16,
    .axes = OP_AXIS_SEQ_Q | OP_AXIS_SEQ_KV | OP_AXIS_HEAD_DIM,
    .mix = "read",
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = normalise,
    .tensors = tensors,
    .fill = fill,
    .grid = grid,
    .item_args = item_args,
    .run = run,
    .pack = pack,
    .attach = attach,
    .oracle_row = oracle_row,
    .trivial = trivial,
    .flops = flops,
    .bytes = bytes,
};
