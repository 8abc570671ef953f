/// The tables of the position encodings: what the papers say of them, by other means than the code
/// computes them.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mha_kernel.h"
#include "position_tables.h"

enum { POSITIONS = 8192, WIDTH = 64 };

/// Error of a table's entry: one rounding of a number of magnitude <= 1, and an angle below 2^14
/// whose double is off by some units of 2^-52 of itself.
#define ENTRY (0x1p-25 + 0x1p-36)

/// The sinusoids of `rows` positions, to be freed.
static float *sinusoids(size_t rows, size_t width) {
    float *pe = malloc(rows * width * sizeof(*pe));
    assert_non_null(pe);
    position_sinusoid(0, rows, width, pe, width);
    return pe;
}

static int compare_rows(const void *a, const void *b) {
    return memcmp(a, b, WIDTH * sizeof(float));
}

static void positions_differ(void **state) {
    (void)state;
    float *pe = sinusoids(POSITIONS, WIDTH);
    // Of sorted rows, equal ones are neighbours.
    qsort(pe, POSITIONS, WIDTH * sizeof(float), compare_rows);
    for (size_t r = 1; r < POSITIONS; r++) {
        assert_true(compare_rows(pe + (r - 1) * WIDTH, pe + r * WIDTH) != 0);
    }
    free(pe);
}

static void by_definition(void **state) {
    (void)state;
    static const size_t widths[] = {1, 2, 7, 64, 768}, positions[] = {0, 1, 2, 511, 8191};
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        const size_t width = widths[w];
        float *row = malloc((width + 1) * sizeof(*row));
        assert_non_null(row);
        for (size_t p = 0; p < sizeof(positions) / sizeof(positions[0]); p++) {
            row[width] = 7;
            position_sinusoid(positions[p], 1, width, row, width);
            for (size_t i = 0; i < width; i++) {
                const long double angle =
                    (long double)positions[p] /
                    powl(10000.0L, (long double)(i / 2 * 2) / (long double)width);
                const long double want = i % 2 == 0 ? sinl(angle) : cosl(angle);
                assert_true(fabs((double)row[i] - (double)want) <= ENTRY);
            }
            assert_true(memcmp(&row[width], &(float){7}, sizeof(float)) == 0);
        }
        free(row);
    }
}

/// PE(pos + k) = R_k PE(pos): in each pair a rotation by the angle that PE(k) itself has.
static void shift_is_rotation(void **state) {
    (void)state;
    // Two products, each of two entries of magnitude <= 1, against a third entry.
    const double bound = 5 * ENTRY + 2 * ENTRY * ENTRY;
    static const size_t shifts[] = {1, 2, 100, 4095};
    float *pe = sinusoids(POSITIONS, WIDTH);
    for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++) {
        const float *turn = pe + shifts[s] * WIDTH;
        for (size_t p = 0; p + shifts[s] < POSITIONS; p++) {
            const float *from = pe + p * WIDTH, *to = from + shifts[s] * WIDTH;
            for (size_t i = 0; i < WIDTH; i += 2) {
                const double sine = (double)turn[i], cosine = (double)turn[i + 1];
                const double a = (double)from[i], b = (double)from[i + 1];
                assert_true(fabs(cosine * a + sine * b - (double)to[i]) <= bound);
                assert_true(fabs(cosine * b - sine * a - (double)to[i + 1]) <= bound);
            }
        }
    }
    free(pe);
}

/// RoPE of base 10000 has the angles of the sinusoids; other bases have their own.
static void rope_angles(void **state) {
    (void)state;
    enum { ROWS = 300, PAIRS = WIDTH / 2, STRIDE = PAIRS + 3 };
    float *pe = sinusoids(ROWS, WIDTH);
    static float cosines[ROWS * STRIDE], sines[ROWS * STRIDE];
    position_rope(0, ROWS, WIDTH, ROPE_BASE, cosines, NULL, STRIDE);
    position_rope(0, ROWS, WIDTH, ROPE_BASE, NULL, sines, STRIDE);
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < PAIRS; i++) {
            assert_true(sines[r * STRIDE + i] - pe[r * WIDTH + 2 * i] == 0.0f);
            assert_true(cosines[r * STRIDE + i] - pe[r * WIDTH + 2 * i + 1] == 0.0f);
        }
    }
    free(pe);
    const double base = 500000;
    position_rope(ROWS, 1, WIDTH, base, cosines, sines, PAIRS);
    for (size_t i = 0; i < PAIRS; i++) {
        const long double angle =
            (long double)ROWS / powl((long double)base, 2.0L * (long double)i / WIDTH);
        assert_true(fabs((double)cosines[i] - (double)cosl(angle)) <= ENTRY);
        assert_true(fabs((double)sines[i] - (double)sinl(angle)) <= ENTRY);
    }
    position_rope(0, 1, 1, base, NULL, NULL, 0);  // no pair: nothing is written
}

static void assert_slope(size_t head, size_t heads, double exponent) {
    const float want = (float)exp2(exponent);
    assert_true(position_alibi_slope(head, heads) - want == 0.0f);
}

/// Press et al. 2022, section 3: 1/2 ... 1/256 for 8 heads; 2^-0.5, 2^-1 ... 2^-8 for 16. Their
/// code: 12 heads have those of 8, then the 1st, 3rd, 5th and 7th of 16.
static void slopes(void **state) {
    (void)state;
    for (size_t h = 0; h < 8; h++) {
        assert_slope(h, 8, -(double)(h + 1));
        assert_slope(h, 12, -(double)(h + 1));
    }
    for (size_t h = 0; h < 16; h++) {
        assert_slope(h, 16, -0.5 * (double)(h + 1));
    }
    for (size_t h = 0; h < 4; h++) {
        assert_slope(8 + h, 12, -0.5 - (double)h);
    }
    assert_slope(0, 1, -8);
    assert_slope(2, 3, -2);
    for (size_t heads = 1; heads <= 128; heads++) {
        for (size_t h = 0; h < heads; h++) {
            const float slope = position_alibi_slope(h, heads);
            assert_true(slope > 0 && slope < 1);
            for (size_t other = 0; other < h; other++) {
                assert_true(fabsf(position_alibi_slope(other, heads) - slope) > 0);
            }
        }
    }
}

/// base^exponent, exact below 2^128.
__extension__ typedef unsigned __int128 wide;
static wide power(wide base, size_t exponent) {
    wide result = 1;
    for (size_t i = 0; i < exponent; i++) {
        result *= base;
    }
    return result;
}

/// The formula of T5's published code in exact arithmetic: of n buckets in a direction the first m
/// = n/2 are distances, then m + floor(log(d/m) / log(128/m) * (n - m)), at most n - 1. With whole
/// numbers: the largest k with d^m >= m^m (128/m)^k. Distances from 128 on have the last bucket.
static size_t formula(ptrdiff_t distance, bool causal) {
    const size_t n = causal ? 32 : 16, m = n / 2;
    const size_t first = !causal && distance > 0 ? n : 0;
    const size_t far = distance < 0 ? (size_t)-distance : causal ? 0 : (size_t)distance;
    if (far < m) {
        return first + far;
    }
    const wide d = far < 128 ? far : 128;
    size_t k = 0;
    while (m + k + 1 < n && power(d, m) >= power(m, m) * power(128 / m, k + 1)) {
        k++;
    }
    return first + m + k;
}

static void buckets(void **state) {
    (void)state;
    for (ptrdiff_t distance = -4096; distance <= 4096; distance++) {
        assert_int_equal(mha_t5_bucket(distance, false), formula(distance, false));
        assert_int_equal(mha_t5_bucket(distance, true), formula(distance, true));
    }
    for (int causal = 0; causal <= 1; causal++) {
        for (size_t b = 1; b < mha_t5_buckets(causal); b++) {
            const ptrdiff_t begin = (ptrdiff_t)mha_t5_bucket_begin(b, causal);
            assert_int_equal(mha_t5_bucket(-begin, causal), b);
            assert_int_equal(mha_t5_bucket(1 - begin, causal), b - 1);
        }
    }
}

static void assert_bias(const struct mha_bias *bias, size_t head, size_t row, size_t key,
                        double want) {
    assert_true(fabs(position_bias_at(bias, head, row, key) - want) <= 0);
}

/// Head, query and key find their slope or row of the table.
static void biases(void **state) {
    (void)state;
    struct problem problem = {
        .op = "sdpa",
        .dtype = "f32",
        .shape = {.batch = 1, .heads = 8, .kv_heads = 4, .seq_q = 2, .seq_kv = 5, .head_dim = 1},
        .position = {.kind = POSITION_NONE}};
    struct tensor tensor = {0};
    assert_false(position_bias_tensor(&problem, &tensor.shape));
    struct mha_bias bias = position_bias(&problem, 2, NULL);
    assert_int_equal(bias.kind, MHA_BIAS_NONE);
    assert_bias(&bias, 0, 0, 0, 0);

    problem.position.kind = POSITION_ALIBI;
    assert_true(position_bias_tensor(&problem, &tensor.shape));
    assert_true(tensor.shape.given);
    float row[8];
    tensor.data = row;
    tensor.row_stride = tensor.plane_stride = tensor.shape.cols;
    position_bias_fill(&problem, &tensor);
    bias = position_bias(&problem, 2, &tensor);
    // Query 0 stands at key 3; head 2 + 1 has the slope 2^-4.
    assert_bias(&bias, 1, 0, 3, 0);
    assert_bias(&bias, 1, 0, 0, -3 * 0x1p-4);
    assert_bias(&bias, 1, 0, 4, -0x1p-4);
    assert_bias(&bias, 1, 1, 0, -4 * 0x1p-4);

    problem.position.kind = POSITION_T5;
    assert_true(position_bias_tensor(&problem, &tensor.shape));
    assert_false(tensor.shape.given);
    enum { STRIDE = MHA_T5_BUCKETS + 1 };
    float table[8 * STRIDE];
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        table[i] = (float)i;
    }
    tensor.data = table;
    tensor.row_stride = STRIDE;
    bias = position_bias(&problem, 2, &tensor);
    assert_bias(&bias, 1, 0, 3, 3 * STRIDE);
    assert_bias(&bias, 1, 0, 1, 3 * STRIDE + 2);
    assert_bias(&bias, 1, 0, 4, 3 * STRIDE + 17);
    problem.position.causal = true;
    bias = position_bias(&problem, 2, &tensor);
    assert_bias(&bias, 1, 0, 4, 3 * STRIDE);
    // More queries than keys: the first ones stand before the first key.
    problem.shape.seq_q = 9;
    problem.position.causal = false;
    bias = position_bias(&problem, 0, &tensor);
    assert_bias(&bias, 0, 0, 0, 16 + 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_differ),
        cmocka_unit_test(by_definition),
        cmocka_unit_test(shift_is_rotation),
        cmocka_unit_test(rope_angles),
        cmocka_unit_test(slopes),
        cmocka_unit_test(buckets),
        cmocka_unit_test(biases),
    };
    return cmocka_run_group_tests_name("position_tables", tests, NULL, NULL);
}
