/// The oracle of the whole layer, in double precision: projections of all tokens, then contexts and
/// output of the rows that are asked for, with a bound for each element.
///
/// Why the bound is a probabilistic one. Worst-case bounds of two products of depth d_model in a
/// row grow with sqrt(d_model) times what they should be, since they take every rounding error for
/// as large as it can be and all of one sign: at GPT-3's size an output of zeros would be within
/// them. So rounding errors are taken for what they are like: mean-independent random numbers
/// delta with mean zero and |delta| <= u = 2^-24 (Higham and Mary 2019, "A new approach to
/// probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), model 2.1). A sum of
/// c_i delta_i then exceeds LAMBDA u sqrt(sum c_i^2) with probability at most
/// 2 exp(-LAMBDA^2 / 2) (Azuma and Hoeffding, their theorem 2.3): 5 10^-18 for LAMBDA = 9, below
/// 10^-10 for an output of 10^7 elements. Below, the *deviation* of an error is such a
/// u sqrt(sum c_i^2); deviations of independent errors add in squares, of others as they are.
///
/// Products of depth n. A rounding error's cofactor is a partial sum, whatever the order of the
/// additions at most sum |x_i w_i| <= |x| |w| (Cauchy and Schwarz), |.| being the Euclidean norm:
/// n of them deviate by u sqrt(n) |x| |w|. Flushing costs at most 2^-126 (2n + sum |x_i| + sum
/// |w_i|), which is added to the deviation.
///
/// Projections of token t: a_t w_j, where w_j is the norm of the weight's column and a_t =
/// u sqrt(d_model) |x_t|. Positions that are added to X round each x_i once more; that error is
/// common to all columns, which may add up to the square root of their number, d_model at most: a_t
/// doubles. Keys and values of the cache are exact.
///
/// Scores. s_tj = scale q_t . k_j deviates by
///   the query's error: scale times the sum of k_ji times independent errors: scale e_q |k_j|, with
///     e_q = a_t max_i w_i over the head's columns; common to all keys of the row;
///   the key's error: likewise scale e_k |q_t|; other keys have others;
///   its own roundings: u sqrt(head_dim + 2) scale |q_t| |k_j| (the scale may be multiplied into
///     either), 6 more under RoPE (two products and a sum for each of q and k, whose rotation keeps
///     norms and so the deviations above); with a bias, u (|s_tj| + 2 |b_tj|).
/// Their sum is dev_j. Besides, the exponentials have errors that need not be random, det_j =
/// u (2 g_j + 8 + 9 (n + log2 n)): 2 u g_j for the distance g_j to the row's maximum, 4 ULP for the
/// exponential, 9 u for each time that a running maximum may have grown, as ops/sdpa.c derives it.
///
/// Contexts. c = sum_j p_j v_j over n visible keys changes by sum_j p_j (exp(t_j) - 1) (v_j - c) /
/// sum_j p_j exp(t_j) when the scores change by t_j, |t_j| <= m = max_j (LAMBDA dev_j + det_j). The
/// divisor is at least exp(-m), and exp(t) - 1 = t (1 + r), |r| <= (exp(m) - 1 - m) / m. So up to
/// the factor exp(m), in the norm over the head's elements,
///   the query's error deviates by the norm of the matrix sum_j p_j (v_j - c) k_j^T, times scale
///     e_q: at most |K|_2 sqrt(sum_j p_j^2 |v_j - c|^2), and at most sum_j p_j |v_j - c| |k_j|. The
///     spectral norm |K|_2 of the head's keys is at most the fourth root of |(K^T K)^2|_F;
///   the keys' errors and the scores' roundings deviate by sqrt(sum_j p_j^2 |v_j - c|^2 dev_j^2);
///   what is not random, and r, add sum_j p_j |v_j - c| (det_j + r (LAMBDA dev_j + det_j)).
/// The values' errors deviate by exp(2m) sqrt(sum_j p_j^2 e_vj^2), e_vj = a_j sqrt(sum_i w_i^2);
/// the roundings of 2n + 3 products, sums and a quotient by exp(2m) u sqrt(2n + 3) sum_j p_j |v_j|.
/// Where m is too large for that to say anything: computed weights have the sum 1 too, so c differs
/// from a mean of the v_j by max_j |v_j - c| at most, and the last two are below max_j e_vj and
/// u sqrt(2n + 3) max_j |v_j|.
///
/// Output. y_o = sum of c_i w_io. Of a head's error at most N_ho, the norm of its rows of W_O's
/// column, times the norm of the head's error arrives. Heads that share keys have errors in common,
/// and add as they are; groups of heads are independent, and add in squares; what is not random
/// adds as it is. The product's own deviation is u sqrt(d_model) |c| |w_o|.
///
/// The oracle's own arithmetic has d_model 2^-53 for each sqrt(d_model) 2^-24 above: below 2^-16 of
/// the bound for any depth below 2^26, which is added.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/mha.h"
#include "position_tables.h"
#include "team.h"

#define LAMBDA 9.0
#define U 0x1p-24
#define FLUSH 0x1p-126

/// Tiles of the products: rows and columns that are summed in registers, rows of W that are
/// widened to double at a time (with PANEL_COLS columns 128 KiB: half of a usual L2).
/// What one context keeps of each visible key: weight, distance to the maximum, deviations.
enum { WEIGHT, BELOW, COMMON, OWN, SCORE_ROWS };

enum { TILE_ROWS = 4, TILE_COLS = 4, PANEL_ROWS = 256, PANEL_COLS = 64 };

/// What is known of the layer.
struct layer {
    const struct problem *problem;
    const struct tensor *tensors;
    struct mha_places at;
    size_t depth, tokens, outputs, group, kv_planes;
    double *x;          ///< [tokens][depth], positions added.
    double *x_norm;     ///< [tokens]
    double *projected;  ///< [tokens][outputs]; not rotated.
    double *column;     ///< [outputs]: norms of W_QKV's columns.
    double *k, *v;      ///< [kv_planes][seq_kv][head_dim]
    double *k_error;    ///< [kv_planes][seq_kv]: deviation of each element.
    double *v_error;    ///< [kv_planes][seq_kv]: deviation of the norm.
    double *k_norm;     ///< [kv_planes][seq_kv]
    double *spectral;   ///< [kv_planes]
    double *gram;       ///< [threads][2][head_dim][head_dim]: scratch.
    double *scores;     ///< [threads][SCORE_ROWS][seq_kv]: likewise.
    double *block;      ///< [heads][depth]: N_ho.
    // the rows asked for
    size_t count;
    const size_t *rows;
    double *context;  ///< [count][depth]
    double *random,
        *fixed;  ///< [count][heads]: deviation of a head's context, and what is not random.
    double *want, *bound;
};

// --- products
// ------------------------------------------------------------------------------------------

/// c[m][n] = a[m][k] w[k][n] over doubles and a tensor of floats, and the norms of w's columns, of
/// all its rows (`blocks` 1) or of equal blocks of them.
struct product {
    size_t m, n, k;
    const double *a;
    const struct tensor *w;
    double *c;
    size_t blocks;
    double *norms;    ///< [blocks][n]
    double **panels;  ///< [threads][PANEL_ROWS * PANEL_COLS]
};

/// Adds a tile's products over `depth` rows of a strip: c[r][j] += a[r][i] strip[i][j].
static void add_tile(size_t rows, size_t depth, const double *a, size_t a_stride,
                     const double *strip, double *c, size_t c_stride, size_t cols) {
    double sum[TILE_ROWS][TILE_COLS] = {{0}};
    if (rows == TILE_ROWS) {
        for (size_t i = 0; i < depth; i++) {
            for (size_t r = 0; r < TILE_ROWS; r++) {
                for (size_t j = 0; j < TILE_COLS; j++) {
                    sum[r][j] += a[r * a_stride + i] * strip[i * TILE_COLS + j];
                }
            }
        }
    } else {
        for (size_t r = 0; r < rows; r++) {
            for (size_t i = 0; i < depth; i++) {
                for (size_t j = 0; j < TILE_COLS; j++) {
                    sum[r][j] += a[r * a_stride + i] * strip[i * TILE_COLS + j];
                }
            }
        }
    }
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < cols; j++) {
            c[r * c_stride + j] += sum[r][j];
        }
    }
}

/// Widens a block of W into strips of TILE_COLS columns, padded with zeros, and adds to the squares
/// of its columns.
static void widen(const struct product *p, size_t first_row, size_t rows, size_t first_col,
                  size_t cols, double *panel) {
    for (size_t i = 0; i < rows; i++) {
        const float *w = tensor_row(p->w, 0, first_row + i) + first_col;
        double *norms = p->norms + (first_row + i) / (p->k / p->blocks) * p->n + first_col;
        for (size_t j = 0; j < PANEL_COLS; j++) {
            const double value = j < cols ? (double)w[j] : 0;
            panel[j / TILE_COLS * ((size_t)PANEL_ROWS * TILE_COLS) + i * TILE_COLS +
                  j % TILE_COLS] = value;
            if (j < cols) {
                norms[j] += value * value;
            }
        }
    }
}

static void product_columns(void *context, size_t index, int thread) {
    const struct product *p = context;
    const size_t first_col = index * PANEL_COLS;
    const size_t cols = p->n - first_col < PANEL_COLS ? p->n - first_col : PANEL_COLS;
    double *panel = p->panels[thread];
    for (size_t i = 0; i < p->k; i += PANEL_ROWS) {
        const size_t depth = p->k - i < PANEL_ROWS ? p->k - i : PANEL_ROWS;
        widen(p, i, depth, first_col, cols, panel);
        for (size_t r = 0; r < p->m; r += TILE_ROWS) {
            const size_t rows = p->m - r < TILE_ROWS ? p->m - r : TILE_ROWS;
            for (size_t j = 0; j < cols; j += TILE_COLS) {
                add_tile(rows, depth, p->a + r * p->k + i, p->k, panel + j * PANEL_ROWS,
                         p->c + r * p->n + first_col + j, p->n,
                         cols - j < TILE_COLS ? cols - j : TILE_COLS);
            }
        }
    }
    for (size_t b = 0; b < p->blocks; b++) {
        for (size_t j = first_col; j < first_col + cols; j++) {
            p->norms[b * p->n + j] = sqrt(p->norms[b * p->n + j]);
        }
    }
}

/// Runs a product; c and norms are zero before.
static bool multiply(struct product *p, int threads) {
    bool good = true;
    p->panels = calloc((size_t)threads, sizeof(*p->panels));
    for (int t = 0; p->panels && t < threads; t++) {
        p->panels[t] = malloc(sizeof(double) * PANEL_ROWS * PANEL_COLS);
        good = good && p->panels[t];
    }
    good = good && p->panels;
    if (good) {
        team_for(threads, (p->n + PANEL_COLS - 1) / PANEL_COLS, product_columns, p);
    }
    for (int t = 0; p->panels && t < threads; t++) {
        free(p->panels[t]);
    }
    free(p->panels);
    return good;
}

static double norm(const double *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += x[i] * x[i];
    }
    return sqrt(sum);
}

static double dot(const double *x, const double *y, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static double largest(const double *x, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, x[i]);
    }
    return most;
}

// --- from X to queries, keys and values
// ----------------------------------------------------------------

static void read_x(struct layer *l) {
    for (size_t t = 0; t < l->tokens; t++) {
        const float *x = tensor_row(&l->tensors[l->at.x], 0, t);
        const float *added =
            l->at.added ? tensor_row(&l->tensors[l->at.added], 0, t % l->problem->shape.seq_q)
                        : NULL;
        double *to = l->x + t * l->depth;
        for (size_t i = 0; i < l->depth; i++) {
            to[i] = (double)x[i] + (added ? (double)added[i] : 0);
        }
        l->x_norm[t] = norm(to, l->depth);
    }
}

/// a_t.
static double token_error(const struct layer *l, size_t token) {
    return (l->at.added ? 2 : 1) * U * sqrt((double)l->depth) * l->x_norm[token];
}

/// What flushing costs an element of a product of depth d_model of vectors of these norms.
static double flushed(const struct layer *l, double x, double w) {
    const double n = (double)l->depth;
    return FLUSH * (2 * n + sqrt(n) * (x + w));
}

/// Rotates one head of one token by the tables of its position.
static void rotate(const struct layer *l, size_t token, double *head) {
    const size_t row = token % l->problem->shape.seq_q, pairs = l->problem->shape.head_dim / 2;
    const bool half = l->problem->position.half;
    const float *c = tensor_row(&l->tensors[l->at.angles], 0, row);
    const float *s = tensor_row(&l->tensors[l->at.angles], 1, row);
    for (size_t i = 0; i < pairs; i++) {
        double *a = head + (half ? i : 2 * i), *b = a + (half ? pairs : 1);
        const double x = *a, y = *b;
        *a = x * (double)c[i] - y * (double)s[i];
        *b = x * (double)s[i] + y * (double)c[i];
    }
}

/// Gathers the keys and values of one kv head, the cache's and the new ones.
static void gather(void *context, size_t plane, int thread) {
    const struct layer *l = context;
    const struct mha_shape *s = &l->problem->shape;
    const size_t dim = s->head_dim, past = mha_past(l->problem);
    const size_t batch = plane / s->kv_heads, head = plane % s->kv_heads;
    const size_t k_col = l->depth + head * dim, v_col = k_col + s->kv_heads * dim;
    const double k_column = largest(l->column + k_col, dim),
                 v_column = norm(l->column + v_col, dim);
    double *gram = l->gram + (size_t)thread * 2 * dim * dim;
    memset(gram, 0, dim * dim * sizeof(*gram));
    for (size_t j = 0; j < s->seq_kv; j++) {
        const size_t at = plane * s->seq_kv + j;
        double *k = l->k + at * dim, *v = l->v + at * dim;
        if (j < past) {
            for (size_t i = 0; i < dim; i++) {
                k[i] = (double)tensor_row(&l->tensors[l->at.past_k], plane, j)[i];
                v[i] = (double)tensor_row(&l->tensors[l->at.past_v], plane, j)[i];
            }
        } else {
            const size_t token = batch * s->seq_q + j - past;
            memcpy(k, l->projected + token * l->outputs + k_col, dim * sizeof(*k));
            memcpy(v, l->projected + token * l->outputs + v_col, dim * sizeof(*v));
            if (l->at.angles) {
                rotate(l, token, k);
            }
            const double a = token_error(l, token), x = l->x_norm[token];
            l->k_error[at] = a * k_column + flushed(l, x, k_column);
            l->v_error[at] = a * v_column + sqrt((double)dim) * flushed(l, x, v_column);
        }
        l->k_norm[at] = norm(k, dim);
        for (size_t i = 0; i < dim; i++) {
            for (size_t h = 0; h < dim; h++) {
                gram[i * dim + h] += k[i] * k[h];
            }
        }
    }
    // |(K^T K)^2|_F, row by row: K^T K is symmetric.
    double *row = gram + dim * dim, sum = 0;
    for (size_t i = 0; i < dim; i++) {
        memset(row, 0, dim * sizeof(*row));
        for (size_t h = 0; h < dim; h++) {
            for (size_t g = 0; g < dim; g++) {
                row[g] += gram[i * dim + h] * gram[h * dim + g];
            }
        }
        const double n = norm(row, dim);
        sum += n * n;
    }
    l->spectral[plane] = pow(sum, 1.0 / 8);
}

// --- from those to the output
// --------------------------------------------------------------------------

/// One context under way: the keys [first, first + n) that the query sees.
struct attention {
    const struct layer *l;
    size_t plane;  ///< Of keys and values.
    size_t first, n;
    double scale;
    double *row[SCORE_ROWS];  ///< [n]
    double *context;          ///< [head_dim]
};

/// Computes weights, distances and the scores' deviations. `q_error` is e_q.
static void weigh(struct attention *a, const double *q, double q_error, size_t query,
                  const struct mha_bias *bias) {
    const struct layer *l = a->l;
    const size_t dim = l->problem->shape.head_dim;
    const double q_norm = norm(q, dim);
    const double roundings = U * sqrt((double)dim + 2 + (l->at.angles ? 6 : 0));
    const double flush = FLUSH * (2 * (double)dim + 2);
    double max = -HUGE_VAL, sum = 0;
    for (size_t j = 0; j < a->n; j++) {
        const size_t at = a->plane * l->problem->shape.seq_kv + a->first + j;
        const double k_norm = l->k_norm[at];
        const double added = position_bias_at(bias, 0, query, a->first + j);
        const double s = a->scale * dot(q, l->k + at * dim, dim) + added;
        a->row[WEIGHT][j] = s;
        a->row[COMMON][j] = a->scale * q_error * k_norm;
        a->row[OWN][j] = a->scale * (l->k_error[at] * q_norm + roundings * q_norm * k_norm) +
                         flush + FLUSH * sqrt((double)dim) * (q_norm + k_norm);
        if (bias->kind != MHA_BIAS_NONE) {
            a->row[OWN][j] += U * (fabs(s) + 2 * fabs(added));
        }
        max = fmax(max, s);
    }
    for (size_t j = 0; j < a->n; j++) {
        a->row[BELOW][j] = max - a->row[WEIGHT][j];
        a->row[WEIGHT][j] = exp(-a->row[BELOW][j]);
        sum += a->row[WEIGHT][j];
    }
    for (size_t j = 0; j < a->n; j++) {
        a->row[WEIGHT][j] /= sum;
    }
}

/// det_j.
static double exponential_error(const struct attention *a, size_t j) {
    const double n = (double)a->n;
    return U * (2 * a->row[BELOW][j] + 8 + 9 * (n + log2(n)));
}

/// Computes the context and how far its norm may be off: what is random and what is not.
static void attend(const struct attention *a, double q_error, double *random, double *fixed) {
    const struct layer *l = a->l;
    const size_t dim = l->problem->shape.head_dim, seq = l->problem->shape.seq_kv;
    const double *v = l->v + (a->plane * seq + a->first) * dim;
    double most = 0, of_values = 0, magnitude = 0, v_most = 0, v_error_most = 0;
    for (size_t j = 0; j < a->n; j++) {
        const double p = a->row[WEIGHT][j];
        const double v_error = l->v_error[a->plane * seq + a->first + j];
        const double v_norm = norm(v + j * dim, dim);
        for (size_t i = 0; i < dim; i++) {
            a->context[i] += p * v[j * dim + i];
        }
        most = fmax(most, LAMBDA * (a->row[COMMON][j] + a->row[OWN][j]) + exponential_error(a, j));
        of_values += p * p * v_error * v_error;
        magnitude += p * v_norm;
        v_most = fmax(v_most, v_norm);
        v_error_most = fmax(v_error_most, v_error);
    }
    // The remainder of the exponential; a series where the difference would cancel.
    const double remainder = most > 1e-4 ? (expm1(most) - most) / most : most * (0.5 + most);
    double squares = 0, common = 0, own = 0, sure = 0, hull = 0;
    for (size_t j = 0; j < a->n; j++) {
        const double p = a->row[WEIGHT][j];
        double apart = 0;
        for (size_t i = 0; i < dim; i++) {
            const double d = v[j * dim + i] - a->context[i];
            apart += d * d;
        }
        const double pd = p * sqrt(apart), det = exponential_error(a, j);
        const double deviation = a->row[COMMON][j] + a->row[OWN][j];
        hull = fmax(hull, sqrt(apart));
        squares += pd * pd;
        common += pd * a->row[COMMON][j];
        own += pd * pd * a->row[OWN][j] * a->row[OWN][j];
        sure += pd * (det + remainder * (LAMBDA * deviation + det));
    }
    const double grown = exp(most), n = (double)a->n;
    const double by_matrix = a->scale * q_error * l->spectral[a->plane] * sqrt(squares);
    *random = grown * (fmin(common, by_matrix) + sqrt(own));
    *fixed = grown * sure;
    if (!(LAMBDA * *random + *fixed < hull)) {
        *random = 0;
        *fixed = hull;
    }
    const double weights = grown * grown;
    *random += fmin(weights * sqrt(of_values), v_error_most) +
               U * sqrt(2 * n + 3) * fmin(weights * magnitude, v_most);
}

/// One head of one row that is asked for.
static void attend_one(void *context, size_t index, int thread) {
    struct layer *l = context;
    const struct mha_shape *s = &l->problem->shape;
    const size_t asked = index / s->heads, head = index % s->heads, dim = s->head_dim;
    const size_t token = l->rows[asked], batch = token / s->seq_q, query = token % s->seq_q;
    const struct mha_mask mask = problem_mask(l->problem, batch);
    const struct mha_span span = mha_row_span(&mask, query);
    if (span.end == span.begin) {
        return;  // zeros
    }
    double *q = l->gram + (size_t)thread * 2 * dim * dim;
    memcpy(q, l->projected + token * l->outputs + head * dim, dim * sizeof(*q));
    if (l->at.angles) {
        rotate(l, token, q);
    }
    const double column = largest(l->column + head * dim, dim);
    const double q_error = token_error(l, token) * column + flushed(l, l->x_norm[token], column);
    const struct mha_bias bias =
        position_bias(l->problem, head, l->at.bias ? &l->tensors[l->at.bias] : NULL);
    struct attention a = {.l = l,
                          .plane = batch * s->kv_heads + head / l->group,
                          .first = span.begin,
                          .n = span.end - span.begin,
                          .scale = (double)(1.0f / sqrtf((float)dim)),
                          .context = l->context + asked * l->depth + head * dim};
    for (size_t i = 0; i < SCORE_ROWS; i++) {
        a.row[i] = l->scores + ((size_t)thread * SCORE_ROWS + i) * s->seq_kv;
    }
    weigh(&a, q, q_error, query, &bias);
    attend(&a, q_error, &l->random[index], &l->fixed[index]);
}

/// The bounds of one row's output.
static void bound_row(void *context, size_t asked, int thread) {
    (void)thread;
    const struct layer *l = context;
    const size_t heads = l->problem->shape.heads;
    const double *random = l->random + asked * heads, *fixed = l->fixed + asked * heads;
    double size = norm(l->context + asked * l->depth, l->depth);
    for (size_t h = 0; h < heads; h++) {
        size += LAMBDA * random[h] + fixed[h];
    }
    for (size_t o = 0; o < l->depth; o++) {
        double squares = 0, sure = 0, column = 0;
        for (size_t first = 0; first < heads; first += l->group) {
            double of_group = 0;
            for (size_t h = first; h < first + l->group; h++) {
                const double block = l->block[h * l->depth + o];
                of_group += block * random[h];
                sure += block * fixed[h];
                column += block * block;
            }
            squares += of_group * of_group;
        }
        column = sqrt(column);
        const double own = U * sqrt((double)l->depth) * size * column;
        const double at = LAMBDA * (sqrt(squares) + own) + sure + flushed(l, size, column);
        const size_t element = asked * l->depth + o;
        l->bound[element] = isfinite(l->want[element]) ? at * (1 + 0x1p-16) : FLUSH;
    }
}

static double *reals(size_t count) {
    return calloc(count + 1, sizeof(double));
}

static void layer_free(struct layer *l) {
    double *const all[] = {l->x,       l->x_norm,  l->projected, l->column, l->k,      l->v,
                           l->k_error, l->v_error, l->k_norm,    l->gram,   l->scores, l->spectral,
                           l->block,   l->context, l->random,    l->fixed};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        free(all[i]);
    }
}

static bool layer_make(struct layer *l, int threads) {
    const struct mha_shape *s = &l->problem->shape;
    const size_t keys = l->kv_planes * s->seq_kv, dim = s->head_dim;
    struct {
        double **at;
        size_t count;
    } const all[] = {
        {&l->x, l->tokens * l->depth},
        {&l->x_norm, l->tokens},
        {&l->projected, l->tokens * l->outputs},
        {&l->column, l->outputs},
        {&l->k, keys * dim},
        {&l->v, keys * dim},
        {&l->k_error, keys},
        {&l->v_error, keys},
        {&l->k_norm, keys},
        {&l->spectral, l->kv_planes},
        {&l->gram, (size_t)threads * 2 * dim * dim},
        {&l->scores, (size_t)threads * SCORE_ROWS * s->seq_kv},
        {&l->block, s->heads * l->depth},
        {&l->context, l->count * l->depth},
        {&l->random, l->count * s->heads},
        {&l->fixed, l->count * s->heads},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        *all[i].at = reals(all[i].count);
        good = good && *all[i].at;
    }
    return good;
}

bool mha_oracle_rows(const struct problem *problem, const struct tensor *tensors, size_t count,
                     const size_t *planes, const size_t *rows, double *want, double *bound,
                     int threads) {
    (void)planes;  // there is one
    const struct mha_shape *s = &problem->shape;
    struct layer l = {
        .problem = problem,
        .tensors = tensors,
        .at = mha_places(problem),
        .depth = mha_depth(problem),
        .tokens = mha_tokens(problem),
        .outputs = mha_outputs(problem),
        .group = s->heads / s->kv_heads,
        .kv_planes = s->batch * s->kv_heads,
        .count = count,
        .rows = rows,
        .want = want,
        .bound = bound,
    };
    bool good = layer_make(&l, threads);
    if (good) {
        read_x(&l);
        struct product project = {.m = l.tokens,
                                  .n = l.outputs,
                                  .k = l.depth,
                                  .a = l.x,
                                  .w = &tensors[l.at.w_qkv],
                                  .c = l.projected,
                                  .blocks = 1,
                                  .norms = l.column};
        good = multiply(&project, threads);
    }
    if (good) {
        team_for(threads, l.kv_planes, gather, &l);
        team_for(threads, count * s->heads, attend_one, &l);
        struct product out = {.m = count,
                              .n = l.depth,
                              .k = l.depth,
                              .a = l.context,
                              .w = &tensors[l.at.w_out],
                              .c = want,
                              .blocks = s->heads,
                              .norms = l.block};
        good = multiply(&out, threads);
    }
    if (good) {
        team_for(threads, count, bound_row, &l);
    }
    layer_free(&l);
    return good;
}
