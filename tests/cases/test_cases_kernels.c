/// Faults that users of other attention kernels met and reported in public, held against every
/// kernel here. Each test names the report, and has the value that is right.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stage.h"

static const struct layout at_end = {PLACE_BACK, 0, 0, 0};

static struct problem softmax_problem(size_t rows, size_t cols) {
    return (struct problem){.op = "softmax", .dtype = "f32", .shape = {1, 1, 1, rows, cols, 64}};
}

static struct problem shaped(const char *op, struct mha_shape shape) {
    return (struct problem){.op = op, .dtype = "f32", .shape = shape};
}

enum class_of { ZERO, NOT_A_NUMBER };

/// Expects a row of the output to hold zeros, or NaNs, only.
static void expect_row(const struct mha_kernel *kernel, const struct stage *stage, size_t row,
                       enum class_of class) {
    const struct tensor *y = stage_output(stage);
    for (size_t c = 0; c < y->shape.cols; c++) {
        const float value = tensor_row(y, 0, row)[c];
        const bool right = class == ZERO ? fpclassify(value) == FP_ZERO : isnan(value) != 0;
        if (!right) {
            fail_msg("%s: %zu columns, row %zu, column %zu: %g is not %s", kernel->name,
                     y->shape.cols, row, c, (double)value, class == ZERO ? "0" : "NaN");
        }
    }
}

// oneDNN pull request 4890: NaN on a fully masked row, with one instruction set only.
static void masked_row_is_zero(const struct mha_kernel *kernel) {
    for (size_t cols = 1; cols <= 70; cols++) {
        struct stage stage;
        const struct problem problem = softmax_problem(3, cols);
        stage_make(&stage, &problem, &at_end);
        stage_fill(&stage, "normal");
        for (size_t c = 0; c < cols; c++) {
            stage_row(&stage, 0, 0, 1)[c] = -INFINITY;
        }
        assert_true(stage_run(&stage, kernel));
        expect_row(kernel, &stage, 1, ZERO);
        stage_free(&stage);
    }
}

static void case_01_softmax_fully_masked_row(void **state) {
    (void)state;
    stage_for_each("softmax", masked_row_is_zero);
}

// tt-metal issue 56056: 64 columns of -inf gave 1/64 each, and a NaN gave 0.
static void special_rows(const struct mha_kernel *kernel) {
    struct stage stage;
    const struct problem problem = softmax_problem(4, 64);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    for (size_t c = 0; c < 64; c++) {
        stage_row(&stage, 0, 0, 0)[c] = -INFINITY;
    }
    stage_row(&stage, 0, 0, 1)[17] = INFINITY;
    stage_row(&stage, 0, 0, 2)[40] = NAN;
    assert_true(stage_run(&stage, kernel));
    expect_row(kernel, &stage, 0, ZERO);
    expect_row(kernel, &stage, 1, NOT_A_NUMBER);
    expect_row(kernel, &stage, 2, NOT_A_NUMBER);
    if (stage_judge(&stage) != VERDICT_PASSED) {
        fail_msg("%s: %s", kernel->name, stage.why);
    }
    stage_free(&stage);
}

static void case_02_softmax_special_rows(void **state) {
    (void)state;
    stage_for_each("softmax", special_rows);
}

// lattice issues 371 and 740: the vector maximum and the scalar one treat a NaN differently.
static void nan_in_every_lane(const struct mha_kernel *kernel) {
    struct stage stage;
    const struct problem problem = softmax_problem(16, 16);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    for (size_t r = 0; r < 16; r++) {
        stage_row(&stage, 0, 0, r)[r] = NAN;
    }
    assert_true(stage_run(&stage, kernel));
    for (size_t r = 0; r < 16; r++) {
        expect_row(kernel, &stage, r, NOT_A_NUMBER);
    }
    stage_free(&stage);
}

static void case_03_softmax_nan_in_every_lane(void **state) {
    (void)state;
    stage_for_each("softmax", nan_in_every_lane);
}

static void qk_nan_in_every_lane(const struct mha_kernel *kernel) {
    struct stage stage;
    const struct problem problem = shaped("qk", (struct mha_shape){1, 1, 1, 16, 16, 16});
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    // One NaN in each position of q, row by row, and one in a key.
    for (size_t r = 0; r < 15; r++) {
        stage_row(&stage, 0, 0, r)[r] = NAN;
    }
    stage_row(&stage, 1, 0, 7)[3] = NAN;
    if (stage_run(&stage, kernel)) {
        for (size_t r = 0; r < 16; r++) {
            for (size_t c = 0; c < 16; c++) {
                const bool expected = r < 15 || c == 7;
                if ((isnan(tensor_row(stage_output(&stage), 0, r)[c]) != 0) != expected) {
                    fail_msg("%s: row %zu, column %zu", kernel->name, r, c);
                }
            }
        }
    }
    stage_free(&stage);
}

static void case_03_qk_nan_in_every_lane(void **state) {
    (void)state;
    stage_for_each("qk", qk_nan_in_every_lane);
}

// singa pull request 540: overflow, since no maximum was subtracted.
static void large_logits(const struct mha_kernel *kernel) {
    static const float right[] = {.0321f, .0871f, .2369f, .6439f};
    struct stage stage;
    const struct problem problem = softmax_problem(1, 4);
    stage_make(&stage, &problem, &at_end);
    for (size_t c = 0; c < 4; c++) {
        stage_row(&stage, 0, 0, 0)[c] = 10000.0f + (float)c;
    }
    assert_true(stage_run(&stage, kernel));
    for (size_t c = 0; c < 4; c++) {
        const float got = tensor_row(stage_output(&stage), 0, 0)[c];
        // The values are given to four digits.
        if (!(fabsf(got - right[c]) <= 0.5e-4f)) {
            fail_msg("%s: column %zu is %g", kernel->name, c, (double)got);
        }
    }
    stage_free(&stage);
}

static void case_06_softmax_large_logits(void **state) {
    (void)state;
    stage_for_each("softmax", large_logits);
}

// The same on both sides of 2^16, from where on kernels take the maximum from a score before they
// make it an exponent. Whole and eighths are exact in all of these.
static void case_06_softmax_far_logits(void **state) {
    (void)state;
    static const float shifts[] = {0,      1000,  -1000,  65535,  -65535, 65536,
                                   -65536, 65544, -65544, 0x1p20, -0x1p20};
    enum { ROWS = sizeof(shifts) / sizeof(shifts[0]), COLS = 100 };
    struct stage stage;
    const struct problem problem = softmax_problem(ROWS, COLS);
    stage_make(&stage, &problem, &at_end);
    for (size_t r = 0; r < ROWS; r++) {
        float *x = stage_row(&stage, 0, 0, r);
        for (size_t c = 0; c < COLS; c++) {
            // Distances of up to 124, which is beyond the least result, in no order.
            x[c] = shifts[r] - 1.25f * (float)(c * 37 % COLS);
        }
        x[r] = -INFINITY;
        x[COLS - 1 - r] = -0x1.8p127f;
    }
    stage_check_all(&stage);
    stage_free(&stage);
}

static void check_shape(const char *op, struct mha_shape shape, struct layout layout) {
    struct stage stage;
    const struct problem problem = shaped(op, shape);
    stage_make(&stage, &problem, &layout);
    stage_fill(&stage, "normal");
    for (size_t i = 0; i + 1 < stage.count; i++) {
        buffer_protect(&stage.buffers[i], true);
    }
    stage_check_all(&stage);
    stage_free(&stage);
}

// XNNPACK issues 1003 and 4190: the load of a tail runs past the end.
static void case_07_three_floats_at_a_page_edge(void **state) {
    (void)state;
    check_shape("softmax", (struct mha_shape){1, 1, 1, 1, 3, 64}, at_end);
    check_shape("qk", (struct mha_shape){1, 1, 1, 1, 3, 3}, at_end);
    check_shape("concat", (struct mha_shape){1, 1, 1, 1, 1, 3}, at_end);
    check_shape("split", (struct mha_shape){1, 1, 1, 1, 1, 3}, at_end);
}

// aprender pull request 2098: a hoisted bounds check reads 128 bytes too many.
static void case_08_columns_32_above_a_multiple_of_256(void **state) {
    (void)state;
    static const size_t sizes[] = {32, 288, 544};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const size_t n = sizes[i];
        check_shape("softmax", (struct mha_shape){1, 1, 1, 2, n, 64}, at_end);
        check_shape("qk", (struct mha_shape){1, 1, 1, 2, n, 32}, at_end);
        check_shape("qk", (struct mha_shape){1, 1, 1, 2, 3, n}, at_end);
        check_shape("concat", (struct mha_shape){1, 2, 2, 2, 2, n}, at_end);
        check_shape("split", (struct mha_shape){1, 2, 2, 2, 2, n}, at_end);
    }
}

// Paddle pull request 19487, TNN pull request 1682: aligned loads where nothing is aligned.
static void case_09_base_and_stride_unaligned(void **state) {
    (void)state;
    for (size_t pad = 1; pad < 8; pad++) {
        const struct layout odd = {PLACE_FRONT, 4, pad, 0};
        check_shape("softmax", (struct mha_shape){1, 2, 2, 5, 64, 64}, odd);
        check_shape("qk", (struct mha_shape){1, 2, 1, 5, 64, 64}, odd);
        check_shape("concat", (struct mha_shape){1, 2, 2, 5, 5, 64}, odd);
        check_shape("split", (struct mha_shape){1, 2, 2, 5, 5, 64}, odd);
    }
}

// FasterTransformer issue 89: a head_dim of 80 was silently wrong.
static void case_10_head_dim_80_37_96_100(void **state) {
    (void)state;
    static const size_t dims[] = {80, 37, 96, 100};
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        check_shape("qk", (struct mha_shape){1, 2, 2, 9, 11, dims[i]}, at_end);
        check_shape("concat", (struct mha_shape){1, 2, 2, 9, 9, dims[i]}, at_end);
        check_shape("split", (struct mha_shape){1, 2, 2, 9, 9, dims[i]}, at_end);
    }
}

// attorch issue 14: every head read head 0, and the scale was always 0.5.
enum { VIEW_BATCH = 2, VIEW_SEQ = 5, VIEW_KEYS = 7, VIEW_HEADS = 4, VIEW_KV = 2, VIEW_DIM = 20 };

static float numbered(size_t i) {
    return (float)(i * 37 % 101) * 0.01f - 0.5f;
}

/// Expects the scores of batch `b` in s[head][row][key], for [batch, seq, heads, dim] q and k.
static void expect_scores(const struct mha_kernel *kernel, size_t b, const float *q, const float *k,
                          const float *s) {
    for (size_t i = 0; i < VIEW_HEADS * VIEW_SEQ * VIEW_KEYS; i++) {
        const size_t head = i / VIEW_KEYS / VIEW_SEQ, row = i / VIEW_KEYS % VIEW_SEQ;
        const size_t key = i % VIEW_KEYS, kv = head / (VIEW_HEADS / VIEW_KV);
        const float *a = q + ((b * VIEW_SEQ + row) * VIEW_HEADS + head) * VIEW_DIM;
        const float *c = k + ((b * VIEW_KEYS + key) * VIEW_KV + kv) * VIEW_DIM;
        double sum = 0, magnitude = 0;
        for (size_t d = 0; d < VIEW_DIM; d++) {
            sum += (double)a[d] * (double)c[d];
            magnitude += fabs((double)a[d] * (double)c[d]);
        }
        const double root = sqrt((double)VIEW_DIM), want = sum / root;
        // gamma_n of ops/qk.c, n = head_dim + 2, and two roundings more in the scale itself.
        const double n = VIEW_DIM + 4;
        const double bound = n * 0x1p-24 / (1 - n * 0x1p-24) * magnitude / root + 0x1p-126;
        if (!(fabs((double)s[i] - want) <= bound)) {
            fail_msg("%s: batch %zu, head %zu, row %zu, key %zu: %g in place of %g", kernel->name,
                     b, head, row, key, (double)s[i], want);
        }
    }
}

static void interleaved_heads(const struct mha_kernel *kernel) {
    static float q[VIEW_BATCH * VIEW_SEQ * VIEW_HEADS * VIEW_DIM];
    static float k[VIEW_BATCH * VIEW_KEYS * VIEW_KV * VIEW_DIM];
    static float s[VIEW_HEADS * VIEW_SEQ * VIEW_KEYS];
    const size_t group = VIEW_HEADS / VIEW_KV;
    const struct mha_shape shape = {VIEW_BATCH, VIEW_HEADS, VIEW_KV, VIEW_SEQ, VIEW_KEYS, VIEW_DIM};
    const struct mha_mask mask = {MHA_MASK_NONE, VIEW_SEQ, VIEW_KEYS, VIEW_KEYS, 0};
    const char *why_not = NULL;
    if (kernel->supports != NULL && !kernel->supports(&shape, &mask, &why_not)) {
        return;
    }
    for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
        q[i] = numbered(i);
    }
    for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
        k[i] = numbered(7 * i + 3);
    }
    void *state = kernel->create != NULL ? kernel->create(&shape, &mask) : NULL;
    assert_true(kernel->create == NULL || state != NULL);
    // Room for a packed operand and a workspace; aligned_alloc() takes whole multiples.
    const size_t packed_bytes = kernel->packed_bytes != NULL ? kernel->packed_bytes(&shape) : 0;
    const size_t work_bytes = kernel->workspace_bytes != NULL ? kernel->workspace_bytes(&shape) : 0;
    void *packed = aligned_alloc(64, packed_bytes / 64 * 64 + 64);
    void *workspace = aligned_alloc(64, work_bytes / 64 * 64 + 64);
    assert_true(packed != NULL && workspace != NULL);
    for (size_t b = 0; b < VIEW_BATCH; b++) {
        memset(s, 0xff, sizeof(s));  // NaN
        for (size_t kv = 0; kv < VIEW_KV; kv++) {
            struct mha_qk_args args = {
                .state = state,
                .heads = group,
                .rows = VIEW_SEQ,
                .seq_kv = VIEW_KEYS,
                .head_dim = VIEW_DIM,
                .q_head_stride = VIEW_DIM,
                .q_stride = VIEW_HEADS * VIEW_DIM,
                .k = k + (b * VIEW_KEYS * VIEW_KV + kv) * VIEW_DIM,
                .k_stride = VIEW_KV * VIEW_DIM,
                .s_head_stride = VIEW_SEQ * VIEW_KEYS,
                .s_stride = VIEW_KEYS,
                .scale = 1.0f / sqrtf((float)VIEW_DIM),
            };
            if (packed_bytes > 0) {
                kernel->pack.qk(&args, packed);
                args.packed = packed;
            }
            args.q = q + (b * VIEW_SEQ * VIEW_HEADS + kv * group) * VIEW_DIM;
            args.s = s + kv * group * VIEW_SEQ * VIEW_KEYS;
            kernel->run.qk(&args, work_bytes > 0 ? workspace : NULL);
        }
        expect_scores(kernel, b, q, k, s);
    }
    if (kernel->destroy != NULL) {
        kernel->destroy(state);
    }
    free(packed);
    free(workspace);
}

static void case_11_qk_interleaved_heads(void **state) {
    (void)state;
    stage_for_each("qk", interleaved_heads);
}

// FlagGems pull request 5236: merging the heads wrote with the wrong strides.
static void merged_heads(const struct mha_kernel *kernel) {
    enum { BATCH = 2, HEADS = 3, SEQ = 5, DIM = 20 };
    struct stage stage;
    const struct problem problem =
        shaped("concat", (struct mha_shape){BATCH, HEADS, HEADS, SEQ, SEQ, DIM});
    stage_make(&stage, &problem, &at_end);
    for (size_t plane = 0; plane < (size_t)BATCH * HEADS; plane++) {
        for (size_t i = 0; i < (size_t)SEQ * DIM; i++) {
            stage_row(&stage, 0, plane, i / DIM)[i % DIM] = (float)(plane * 1000 + i);
        }
    }
    if (stage_run(&stage, kernel)) {
        // Contiguous [batch, seq, heads, dim].
        const float *y = stage_output(&stage)->data;
        for (size_t i = 0; i < (size_t)BATCH * SEQ * HEADS * DIM; i++) {
            const size_t dim = i % DIM, head = i / DIM % HEADS, row = i / DIM / HEADS % SEQ;
            const size_t plane = i / DIM / HEADS / SEQ * HEADS + head;
            const float want = (float)(plane * 1000 + row * DIM + dim);
            if (memcmp(&y[i], &want, sizeof(want)) != 0) {
                fail_msg("%s: element %zu is %g in place of %g", kernel->name, i, (double)y[i],
                         (double)want);
            }
        }
    }
    stage_free(&stage);
}

static void case_12_concat_contiguous_output(void **state) {
    (void)state;
    stage_for_each("concat", merged_heads);
}

// pytorch pull request 191325 and issue 106700, flash-attention pull request 2470: no keys at all.
static void no_keys(const struct mha_kernel *kernel) {
    struct stage stage;
    struct problem problem = softmax_problem(3, 0);
    stage_make(&stage, &problem, &at_end);
    assert_true(stage_run(&stage, kernel));
    stage_free(&stage);
    // Five queries, three keys: the first two see none.
    problem = softmax_problem(5, 3);
    problem.mask = MHA_MASK_CAUSAL;
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "nan");
    assert_true(stage_run(&stage, kernel));
    expect_row(kernel, &stage, 0, ZERO);
    expect_row(kernel, &stage, 1, ZERO);
    stage_free(&stage);
}

static void case_13_softmax_without_keys(void **state) {
    (void)state;
    stage_for_each("softmax", no_keys);
}

static void qk_no_keys(const struct mha_kernel *kernel) {
    struct stage stage;
    const struct problem problem = shaped("qk", (struct mha_shape){1, 2, 1, 3, 0, 16});
    stage_make(&stage, &problem, &at_end);
    (void)stage_run(&stage, kernel);
    stage_free(&stage);
}

static void case_13_qk_without_keys(void **state) {
    (void)state;
    stage_for_each("qk", qk_no_keys);
}

// BitNet pull request 580: a build without AVX2 had an empty kernel body.
static void case_16_scalar_exists_for_every_op(void **state) {
    (void)state;
    for (size_t i = 0; i < op_count(); i++) {
        bool found = false;
        for (size_t k = 0; stage_kernel(op_get(i)->name, k) != NULL; k++) {
            found = found || strcmp(stage_kernel(op_get(i)->name, k)->isa, "scalar") == 0;
        }
        if (!found) {
            fail_msg("%s has no scalar kernel", op_get(i)->name);
        }
    }
}

// llama.cpp pull request 7154: exponentials that end among the denormals.
static void case_18_softmax_deep_logits(void **state) {
    (void)state;
    struct stage stage;
    const struct problem problem = softmax_problem(4, 100);
    stage_make(&stage, &problem, &at_end);
    for (size_t i = 0; i < 400; i++) {
        // -87 ... -104 below the one maximum.
        stage_row(&stage, 0, 0, i / 100)[i % 100] =
            i % 100 == i / 100 ? 3.0f : 3.0f - 87.0f - 0.17f * (float)(i % 100);
    }
    stage_check_all(&stage);
    stage_free(&stage);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_01_softmax_fully_masked_row),
        cmocka_unit_test(case_02_softmax_special_rows),
        cmocka_unit_test(case_03_softmax_nan_in_every_lane),
        cmocka_unit_test(case_03_qk_nan_in_every_lane),
        cmocka_unit_test(case_06_softmax_large_logits),
        cmocka_unit_test(case_06_softmax_far_logits),
        cmocka_unit_test(case_07_three_floats_at_a_page_edge),
        cmocka_unit_test(case_08_columns_32_above_a_multiple_of_256),
        cmocka_unit_test(case_09_base_and_stride_unaligned),
        cmocka_unit_test(case_10_head_dim_80_37_96_100),
        cmocka_unit_test(case_11_qk_interleaved_heads),
        cmocka_unit_test(case_12_concat_contiguous_output),
        cmocka_unit_test(case_13_softmax_without_keys),
        cmocka_unit_test(case_13_qk_without_keys),
        cmocka_unit_test(case_16_scalar_exists_for_every_op),
        cmocka_unit_test(case_18_softmax_deep_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
