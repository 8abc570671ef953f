/// embed: token, position and segment embeddings, gathered and summed.
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "heads_copy.h"
#include "op.h"

/// Rows of BERT's tables: Devlin et al. 2018, section 3: a vocabulary of 30,000 WordPieces, which
/// are 30522 in the published models, and two segments.
enum { BERT_VOCABULARY = 30522, SEGMENTS = 2 };

/// Largest table of tokens in memory, which takes long to fill. Nor has it more rows than the text
/// has tokens: rows that are never gathered would count to the working set, by which the bandwidth
/// is chosen that a kernel is held against. A short text still draws from some.
enum { TABLE_BYTES = 64 << 20, TABLE_ROWS_MIN = 64 };

/// The tensors, in order.
enum { TOKEN, POSITION, SEGMENT, IDS, SEGMENTS_OF, RESULT, TENSORS };

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t width(const struct problem *problem) {
    return problem->shape.heads * problem->shape.head_dim;
}

static size_t vocabulary(const struct problem *problem) {
    const size_t tokens = problem->shape.batch * problem->shape.seq_q;
    const size_t most = smaller(BERT_VOCABULARY, TABLE_BYTES / sizeof(float) / width(problem));
    const size_t rows = smaller(most, tokens > TABLE_ROWS_MIN ? tokens : TABLE_ROWS_MIN);
    return rows > 0 ? rows : 1;
}

static size_t tensors(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]) {
    const struct mha_shape *s = &problem->shape;
    shapes[TOKEN] = (struct tensor_shape){.name = "token",
                                          .role = TENSOR_INPUT,
                                          .planes = 1,
                                          .rows = vocabulary(problem),
                                          .cols = width(problem)};
    shapes[POSITION] = shapes[TOKEN];
    shapes[POSITION].name = "position";
    shapes[POSITION].rows = s->seq_q;
    shapes[SEGMENT] = shapes[TOKEN];
    shapes[SEGMENT].name = "segment";
    shapes[SEGMENT].rows = SEGMENTS;
    // A sequence is one row, so that the ids of neighbouring tokens are neighbours in any layout.
    shapes[IDS] = (struct tensor_shape){.name = "ids",
                                        .role = TENSOR_INPUT,
                                        .planes = s->batch,
                                        .rows = 1,
                                        .cols = s->seq_q,
                                        .indices = vocabulary(problem)};
    shapes[SEGMENTS_OF] = shapes[IDS];
    shapes[SEGMENTS_OF].name = "segments";
    shapes[SEGMENTS_OF].indices = SEGMENTS;
    shapes[RESULT] = heads_joined(problem, "y", TENSOR_OUTPUT);
    return TENSORS;
}

/// The indices of one sequence from token `first` on.
static const int32_t *indices(const struct tensor *t, size_t sequence, size_t first) {
    return (const int32_t *)(const void *)(tensor_row(t, sequence, 0) + first);
}

static void item_args(const struct problem *problem, const struct tensor *t,
                      const struct item *item, union mha_args *args) {
    args->embed = (struct mha_embed_args){
        .tokens = item->rows,
        .cols = width(problem),
        .ids = indices(&t[IDS], item->plane, item->first_row),
        .segments = indices(&t[SEGMENTS_OF], item->plane, item->first_row),
        .token = tensor_row(&t[TOKEN], 0, 0),
        .token_stride = t[TOKEN].row_stride,
        .position = tensor_row(&t[POSITION], 0, item->first_row),
        .position_stride = t[POSITION].row_stride,
        .segment = tensor_row(&t[SEGMENT], 0, 0),
        .segment_stride = t[SEGMENT].row_stride,
        .y = tensor_row(&t[RESULT], item->plane, item->first_row),
        .y_stride = t[RESULT].row_stride,
    };
}

static void run(const struct mha_kernel *kernel, const union mha_args *args, void *workspace) {
    kernel->run.embed(&args->embed, workspace);
}

static void attach(union mha_args *args, const void *packed, const void *state) {
    (void)packed;
    args->embed.state = state;
}

/// Gets an index, wherever its float-sized place is.
static size_t index_at(const int32_t *from) {
    int32_t index;
    memcpy(&index, from, sizeof(index));
    return (size_t)index;
}

/// The bound. Two additions in a fixed order, u = 2^-24: the first is off by u |t + p| (Higham, 2nd
/// ed., eq. 2.4), the second by u |fl(t + p) + s| <= u (|t + p + s| + u |t + p|); the oracle's own
/// in double add 2^-53 of the same. Three operands, the first sum and the result may be flushed:
/// 2^-126 each. A first sum beyond the largest float is infinite, as the order of the additions has
/// it.
static void oracle_row(const struct problem *problem, const struct tensor *t, size_t plane,
                       size_t row, double *want, double *bound) {
    const double u = 0x1p-24 + 0x1p-53;
    const float *token = tensor_row(&t[TOKEN], 0, index_at(indices(&t[IDS], plane, row)));
    const float *position = tensor_row(&t[POSITION], 0, row);
    const float *segment =
        tensor_row(&t[SEGMENT], 0, index_at(indices(&t[SEGMENTS_OF], plane, row)));
    for (size_t i = 0; i < width(problem); i++) {
        double first = (double)token[i] + (double)position[i];
        if (isinf((float)first)) {
            first = copysign(HUGE_VAL, first);
        }
        want[i] = first + (double)segment[i];
        bound[i] = 5 * 0x1p-126;
        if (isfinite(want[i])) {
            bound[i] += u * fabs(first) + u * (fabs(want[i]) + u * fabs(first));
        }
    }
}

/// Tokens of one element may all draw the same rows.
static bool trivial(const struct problem *problem) {
    return width(problem) == 1;
}

static double elements(const struct problem *problem) {
    return (double)problem->shape.batch * (double)problem->shape.seq_q * (double)width(problem);
}

static double flops(const struct problem *problem) {
    return 2 * elements(problem);
}

/// Of the table of tokens as many rows as n draws from v are expected to differ in, v (1 - (1 -
/// 1/v)^n); position and segment rows once each; two indices a token.
static void bytes(const struct problem *problem, double *read, double *written) {
    const struct mha_shape *s = &problem->shape;
    const double tokens = (double)s->batch * (double)s->seq_q, v = (double)vocabulary(problem);
    const double rows = v > 1 ? floor(-v * expm1(tokens * log1p(-1 / v))) : tokens > 0 ? 1 : 0;
    const double segments = tokens < SEGMENTS ? tokens : SEGMENTS;
    *read = 4 * (double)width(problem) * (rows + (double)s->seq_q + segments) + 8 * tokens;
    *written = 4 * elements(problem);
}

static const char *const classes[] = {"normal",   "uniform", "cancel", "denormal",  "e30",
                                      "negative", "nan",     "inf",    "minus_inf", NULL};

const struct op_driver op_embed = {
    .name = "embed",
    .rank = 2,
    .axes = OP_AXIS_HEAD_DIM,
    .mix = "read",  // two reads for a write: more than a copy's bandwidth
    .compare = COMPARE_BOUND,
    .classes = classes,
    .normalise = heads_copy_normalise,
    .tensors = tensors,
    .grid = heads_copy_grid,
    .item_args = item_args,
    .run = run,
    .attach = attach,
    .oracle_row = oracle_row,
    .trivial = trivial,
    .flops = flops,
    .bytes = bytes,
};
