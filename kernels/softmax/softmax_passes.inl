/// softmax in three passes over each span, over those of one ISA: for scores that the caches hold.
/// Includers include softmax_<isa>.h and define SOFTMAX_SUM, SOFTMAX_LARGEST and SOFTMAX_EXPS of
/// it, and
///
///   SOFTMAX_LANES                   elements of a vector
///   SOFTMAX_VECTOR, SOFTMAX_SET(x)  a vector, and one of x in every lane
///   SOFTMAX_STORE(y, v)             y[0..SOFTMAX_LANES) = v
///   scale(y, n, factor)             y[i] *= factor for i < n, whole vectors
///   store_tail(y, tail, n, factor)  y[i] = tail[i] * factor for i < n, less than a vector
///
/// Algorithm: the maximum; exp of the distance to it, and the sum; scaling by the sum's reciprocal.
/// Two of these wait for a reduction across a vector, and the scaling for a division too: some 40
/// cycles, in which what waits fills the scheduler. So no pass follows the one that it waits for:
///
///   short rows  exponentials of row i, maximum of row i + 2, scaling of row i - 1
///   long rows   exponentials of row i, maximum of row i + 1, scaling of row i
///
/// Short are rows of which L1 holds the six that are at work. With long ones the wait is a small
/// part, and a row that is scaled later has left L1.
///
/// A short row's zeros are stored behind its exponentials and fetch the next row's lines as these
/// do, so that the output's lines are written in their order: zeros of rows to come made a causal
/// mask's rows wait, beyond L2 for a quarter to a third of the time (Zen 3).
///
/// Rows that L1 does not hold go piece by piece, so that scores come from L2 once: a piece's powers
/// are of the distance to the maximum so far (the online softmax of M. Milakov and N. Gimelshein,
/// arXiv:1805.02867, section 3), rounded to a whole exponent of 2. The last pass brings the pieces
/// together by these: powers of 2, from which no error comes above 2^-126.
#include <math.h>

#include "mha_kernel.h"
#include "softmax/softmax_rows.h"

/// Six rows of 4 KiB in an L1 of 32 KiB.
enum { SHORT_COLS = 1024 };

/// Scores and results of 16 KiB each: all of an L1 of 32 KiB.
enum { LONG_COLS = 4096 };

/// Elements of a piece: its scores, the next piece's and its results are 24 KiB. Of 1024, 2048 and
/// 4096 the best (Emerald Rapids, AVX-512 and AVX2).
enum { PIECE = 2048 };

/// Most pieces of a row; those of longer rows are longer.
enum { PIECES = 64 };

/// The visible part of a row.
struct line {
    const float *x;
    float *y;
    size_t n;
};

/// Gets row i, or an empty one behind the last.
static inline struct line line_at(const struct mha_softmax_args *args, size_t i) {
    if (i >= args->rows) {
        return (struct line){args->x, args->y, 0};
    }
    const struct softmax_row row = softmax_row_at(args, i);
    return (struct line){row.x + row.span.begin, row.y + row.span.begin,
                         row.span.end - row.span.begin};
}

/// y[i] = 0 for i < n, and fetches what is `ahead` elements from there. memset's calls, for some
/// ten vectors each, took 5 to 7 % of a causal mask's time (Zen 3).
static inline void zero(float *y, size_t n, ptrdiff_t ahead) {
    const SOFTMAX_VECTOR zeros = SOFTMAX_SET(0.0f);
    if (n < SOFTMAX_LANES) {
        store_tail(y, zeros, n, zeros);
        return;
    }
    for (size_t i = 0; i + SOFTMAX_LANES < n; i += SOFTMAX_LANES) {
        _mm_prefetch((const char *)(y + ahead + i), _MM_HINT_T0);
        SOFTMAX_STORE(y + i, zeros);
    }
    SOFTMAX_STORE(y + n - SOFTMAX_LANES, zeros);
}

/// Gets x 2^k for a whole k < 0, which is 0 long before k = -300, else x: exponents rise over
/// pieces of -inf alone, whose powers are 0 whatever they are scaled by.
static inline float scaled_down(float x, float k) {
    return k < 0.0f ? ldexpf(x, k < -300.0f ? -300 : (int)k) : x;
}

/// Scales a row of exponentials, of which those behind the `whole` first are in `tail`.
static inline void finish(struct line line, size_t whole, SOFTMAX_VECTOR tail,
                          SOFTMAX_VECTOR factor) {
    scale(line.y, whole, factor);
    store_tail(line.y + whole, tail, line.n - whole, factor);
}

static void run_short(const struct mha_softmax_args *args) {
    struct line now = line_at(args, 0), next = line_at(args, 1);
    float largest = SOFTMAX_LARGEST(now.x, now.n);
    float largest_of_next = SOFTMAX_LARGEST(next.x, next.n);
    struct line done = {now.x, now.y, 0};
    size_t whole = 0;
    SOFTMAX_VECTOR tail = SOFTMAX_SET(0.0f), factor = tail;
    for (size_t i = 0; i < args->rows; i++) {
        const struct line after = line_at(args, i + 2);
        const SOFTMAX_SUM sum =
            SOFTMAX_EXPS(softmax_exponent_of(largest), now.x, now.y, now.n, after.x, next.y);
        const struct softmax_row row = softmax_row_at(args, i);
        if (now.n < args->cols) {
            const ptrdiff_t ahead = next.y - now.y;
            zero(row.y, row.span.begin, ahead);
            zero(row.y + row.span.end, args->cols - row.span.end, ahead);
        }
        largest = largest_of_next;
        largest_of_next = SOFTMAX_LARGEST(after.x, after.n);
        finish(done, whole, tail, factor);
        done = now;
        whole = sum.whole;
        tail = sum.tail;
        factor = SOFTMAX_SET(softmax_factor(sum.total));
        now = next;
        next = after;
    }
    finish(done, whole, tail, factor);
}

static void run_long(const struct mha_softmax_args *args) {
    struct line now = line_at(args, 0);
    float largest = SOFTMAX_LARGEST(now.x, now.n);
    for (size_t i = 0; i < args->rows; i++) {
        const struct line next = line_at(args, i + 1);
        const SOFTMAX_SUM sum =
            SOFTMAX_EXPS(softmax_exponent_of(largest), now.x, now.y, now.n, next.x, NULL);
        largest = SOFTMAX_LARGEST(next.x, next.n);
        finish(now, sum.whole, sum.tail, SOFTMAX_SET(softmax_factor(sum.total)));
        // Where it comes to memory: a row of the output in one go.
        softmax_zero_masked(args, softmax_row_at(args, i));
        now = next;
    }
}

/// Computes a row piece by piece, and fetches the one at next_x. Returns false for a row of scores
/// that are `far` from 0: its results are to be computed otherwise.
static bool in_pieces(struct line line, const float *next_x) {
    const size_t piece =
        line.n <= (size_t)PIECE * PIECES ? PIECE : (line.n / PIECES / PIECE + 1) * PIECE;
    float from[PIECES];
    float largest = -INFINITY, total = 0.0f, last = 0.0f;
    SOFTMAX_SUM sum = {0};
    float largest_of_piece = SOFTMAX_LARGEST(line.x, line.n < piece ? line.n : piece);
    for (size_t i = 0, k = 0; i < line.n; k++) {
        const size_t n = line.n - i < piece ? line.n - i : piece, end = i + n;
        const size_t left = line.n - end;
        largest = largest_of_piece > largest ? largest_of_piece : largest;
        const struct softmax_exponent exponent = softmax_whole_exponent_of(largest);
        if (exponent.far) {
            return false;
        }
        sum = SOFTMAX_EXPS(exponent, line.x + i, line.y + i, n, left > 0 ? line.x + end : next_x,
                           NULL);
        largest_of_piece = SOFTMAX_LARGEST(line.x + end, left < piece ? left : piece);
        total = scaled_down(total, exponent.from - last) + sum.total;
        last = from[k] = exponent.from;
        i = end;
    }
    const float factor = softmax_factor(total);
    // The last ones first: they are still in L1.
    for (size_t k = (line.n + piece - 1) / piece; k-- > 0;) {
        const size_t i = k * piece;
        const SOFTMAX_VECTOR scaled = SOFTMAX_SET(scaled_down(factor, last - from[k]));
        if (line.n - i <= piece) {
            finish((struct line){line.x + i, line.y + i, line.n - i}, sum.whole, sum.tail, scaled);
        } else {
            scale(line.y + i, piece, scaled);
        }
    }
    return true;
}

static void run_pieces(const struct mha_softmax_args *args) {
    for (size_t i = 0; i < args->rows; i++) {
        const struct line now = line_at(args, i), next = line_at(args, i + 1);
        if (!in_pieces(now, next.x)) {
            const float largest = SOFTMAX_LARGEST(now.x, now.n);
            const SOFTMAX_SUM sum =
                SOFTMAX_EXPS(softmax_exponent_of(largest), now.x, now.y, now.n, next.x, NULL);
            finish(now, sum.whole, sum.tail, SOFTMAX_SET(softmax_factor(sum.total)));
        }
        softmax_zero_masked(args, softmax_row_at(args, i));
    }
}

static void run(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    if (args->cols <= SHORT_COLS) {
        run_short(args);
    } else if (args->cols > LONG_COLS && args->x != args->y) {  // a row may be computed twice
        run_pieces(args);
    } else {
        run_long(args);
    }
}
