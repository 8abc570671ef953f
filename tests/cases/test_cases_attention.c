/// Faults of fused attention that users of other kernels met and reported in public, held against
/// every kernel here. Each test names the report, and has the value that is right.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stage.h"

static const struct layout at_end = {PLACE_BACK, 0, 0, 0};

static struct problem shaped(struct mha_shape shape, enum mha_mask_kind mask) {
    return (struct problem){.op = "sdpa",
                            .dtype = "f32",
                            .shape = shape,
                            .mask = mask,
                            .window = mask == MHA_MASK_WINDOW ? 10 : 0};
}

static void check_shape(struct mha_shape shape, enum mha_mask_kind mask, struct layout layout) {
    struct stage stage;
    const struct problem problem = shaped(shape, mask);
    stage_make(&stage, &problem, &layout);
    stage_fill(&stage, "normal");
    for (size_t i = 0; i + 1 < stage.count; i++) {
        buffer_protect(&stage.buffers[i], true);
    }
    stage_check_all(&stage);
    stage_free(&stage);
}

// pytorch issue 127055: NaN for long sequences only, where a band mask hides whole blocks of keys.
static void case_04_narrow_band(void **state) {
    (void)state;
    check_shape((struct mha_shape){1, 1, 1, 600, 600, 16}, MHA_MASK_WINDOW, at_end);
    check_shape((struct mha_shape){1, 1, 1, 600, 600, 16}, MHA_MASK_CAUSAL, at_end);
}

// pytorch issue 101967: a NaN in a masked key leaks.
static void masked_key_is_hidden(const struct mha_kernel *kernel) {
    static float right[2][4];
    static const float hidden[] = {0.5f, NAN, INFINITY, -INFINITY, 1e30f};
    struct stage stage;
    // One sequence of two keys, of which the mask `lengths` shows the first.
    const struct problem problem = shaped((struct mha_shape){1, 1, 1, 2, 2, 4}, MHA_MASK_LENGTHS);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        for (size_t d = 0; d < 4; d++) {
            stage_row(&stage, 1, 0, 1)[d] = hidden[i];
            stage_row(&stage, 2, 0, 1)[d] = hidden[i];
        }
        if (!stage_run(&stage, kernel)) {
            break;
        }
        for (size_t r = 0; r < 2; r++) {
            const float *o = tensor_row(stage_output(&stage), 0, r);
            if (i == 0) {
                memcpy(right[r], o, sizeof(right[r]));
            } else if (!(kernel->flags & MHA_FLAG_PEER) &&
                       memcmp(right[r], o, sizeof(right[r])) != 0) {
                fail_msg("%s: %g behind the mask changes row %zu", kernel->name, (double)hidden[i],
                         r);
            }
        }
        assert_int_equal(stage_judge(&stage), VERDICT_PASSED);
    }
    stage_free(&stage);
}

static void case_05_nan_behind_the_mask(void **state) {
    (void)state;
    stage_for_each("sdpa", masked_key_is_hidden);
}

// FasterTransformer issue 89: a head_dim of 80 was silently wrong.
static void case_10_head_dim_80_37_96_100(void **state) {
    (void)state;
    static const size_t dims[] = {80, 37, 96, 100};
    for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
        check_shape((struct mha_shape){1, 2, 2, 9, 11, dims[i]}, MHA_MASK_NONE, at_end);
        check_shape((struct mha_shape){1, 2, 1, 1, 40, dims[i]}, MHA_MASK_NONE, at_end);
    }
}

// attorch issue 14: every head read head 0, and the scale was always 0.5. FlagGems pull request
// 5236: the output [batch, seq, heads, dim] was written with the wrong strides.
enum { VIEW_BATCH = 2, VIEW_SEQ = 11, VIEW_HEADS = 4, VIEW_KV = 2, VIEW_DIM = 20 };

/// Gets element 0 of a token and head in [batch, seq, heads, dim].
static size_t view_at(size_t b, size_t token, size_t head, size_t heads) {
    return ((b * VIEW_SEQ + token) * heads + head) * VIEW_DIM;
}

static void interleaved_heads(const struct mha_kernel *kernel) {
    static float q[VIEW_BATCH * VIEW_SEQ * VIEW_HEADS * VIEW_DIM];
    static float k[VIEW_BATCH * VIEW_SEQ * VIEW_KV * VIEW_DIM];
    static float v[VIEW_BATCH * VIEW_SEQ * VIEW_KV * VIEW_DIM];
    static float o[VIEW_BATCH * VIEW_SEQ * VIEW_HEADS * VIEW_DIM];
    const size_t group = VIEW_HEADS / VIEW_KV;
    struct stage stage;
    const struct problem problem =
        shaped((struct mha_shape){VIEW_BATCH, VIEW_HEADS, VIEW_KV, VIEW_SEQ, VIEW_SEQ, VIEW_DIM},
               MHA_MASK_NONE);
    const struct mha_shape *shape = &problem.shape;
    const struct mha_mask mask = {MHA_MASK_NONE, VIEW_SEQ, VIEW_SEQ, VIEW_SEQ, 0};
    const char *why_not = NULL;
    if (kernel->supports != NULL && !kernel->supports(shape, &mask, &why_not)) {
        return;
    }
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    for (size_t b = 0; b < VIEW_BATCH; b++) {
        for (size_t t = 0; t < VIEW_SEQ; t++) {
            for (size_t h = 0; h < VIEW_HEADS; h++) {
                memcpy(q + view_at(b, t, h, VIEW_HEADS),
                       stage_row(&stage, 0, b * VIEW_HEADS + h, t), VIEW_DIM * sizeof(float));
            }
            for (size_t h = 0; h < VIEW_KV; h++) {
                memcpy(k + view_at(b, t, h, VIEW_KV), stage_row(&stage, 1, b * VIEW_KV + h, t),
                       VIEW_DIM * sizeof(float));
                memcpy(v + view_at(b, t, h, VIEW_KV), stage_row(&stage, 2, b * VIEW_KV + h, t),
                       VIEW_DIM * sizeof(float));
            }
        }
    }
    memset(o, 0xff, sizeof(o));  // NaN
    void *state = kernel->create != NULL ? kernel->create(shape, &mask) : NULL;
    assert_true(kernel->create == NULL || state != NULL);
    // Room for a packed operand and a workspace; aligned_alloc() takes whole multiples.
    const size_t packed_bytes = kernel->packed_bytes != NULL ? kernel->packed_bytes(shape) : 0;
    const size_t work_bytes = kernel->workspace_bytes != NULL ? kernel->workspace_bytes(shape) : 0;
    void *packed = aligned_alloc(64, packed_bytes / 64 * 64 + 64);
    void *workspace = aligned_alloc(64, work_bytes / 64 * 64 + 64);
    assert_true(packed != NULL && workspace != NULL);
    for (size_t i = 0; i < (size_t)VIEW_BATCH * VIEW_KV; i++) {
        const size_t b = i / VIEW_KV, kv = i % VIEW_KV;
        struct mha_sdpa_args args = {
            .state = state,
            .heads = group,
            .rows = VIEW_SEQ,
            .seq_kv = VIEW_SEQ,
            .head_dim = VIEW_DIM,
            .mask = mask,
            .bias = {.kind = MHA_BIAS_NONE, .seq_q = VIEW_SEQ, .seq_kv = VIEW_SEQ},
            .q_head_stride = VIEW_DIM,
            .q_stride = VIEW_HEADS * VIEW_DIM,
            .k = k + view_at(b, 0, kv, VIEW_KV),
            .k_stride = VIEW_KV * VIEW_DIM,
            .v = v + view_at(b, 0, kv, VIEW_KV),
            .v_stride = VIEW_KV * VIEW_DIM,
            .o_head_stride = VIEW_DIM,
            .o_stride = VIEW_HEADS * VIEW_DIM,
            .scale = 1.0f / sqrtf((float)VIEW_DIM),
        };
        if (packed_bytes > 0) {
            kernel->pack.sdpa(&args, packed);
            args.packed = packed;
        }
        args.q = q + view_at(b, 0, kv * group, VIEW_HEADS);
        args.o = o + view_at(b, 0, kv * group, VIEW_HEADS);
        kernel->run.sdpa(&args, work_bytes > 0 ? workspace : NULL);
    }
    // The oracle judges the rows where it looks for them.
    for (size_t i = 0; i < (size_t)VIEW_BATCH * VIEW_HEADS * VIEW_SEQ; i++) {
        const size_t plane = i / VIEW_SEQ, t = i % VIEW_SEQ;
        memcpy(tensor_row(stage_output(&stage), plane, t),
               o + view_at(plane / VIEW_HEADS, t, plane % VIEW_HEADS, VIEW_HEADS),
               VIEW_DIM * sizeof(float));
    }
    if (stage_judge(&stage) != VERDICT_PASSED) {
        fail_msg("%s: %s", kernel->name, stage.why);
    }
    if (kernel->destroy != NULL) {
        kernel->destroy(state);
    }
    free(packed);
    free(workspace);
    stage_free(&stage);
}

static void case_11_12_interleaved_heads(void **state) {
    (void)state;
    stage_for_each("sdpa", interleaved_heads);
}

/// Expects zeros in rows [0, rows) of the output's first plane.
static void expect_zeros(const struct mha_kernel *kernel, const struct stage *stage, size_t rows) {
    const struct tensor *o = stage_output(stage);
    for (size_t i = 0; i < rows * o->shape.cols; i++) {
        const float value = tensor_row(o, 0, i / o->shape.cols)[i % o->shape.cols];
        if (fpclassify(value) != FP_ZERO) {
            fail_msg("%s: row %zu: %g is not 0", kernel->name, i / o->shape.cols, (double)value);
        }
    }
}

// pytorch pull request 191325 and issue 106700, flash-attention pull request 2470: no keys at all.
static void no_keys(const struct mha_kernel *kernel) {
    static const struct mha_shape empty[] = {
        {1, 2, 1, 5, 0, 16}, {1, 2, 1, 1, 0, 16}, {1, 1, 1, 40, 0, 37}};
    struct stage stage;
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        const struct problem problem = shaped(empty[i], MHA_MASK_NONE);
        stage_make(&stage, &problem, &at_end);
        stage_fill(&stage, "normal");
        if (stage_run(&stage, kernel)) {
            expect_zeros(kernel, &stage, empty[i].seq_q);
        }
        stage_free(&stage);
    }
    // Thirteen queries, three keys: the first ten see none, whatever the keys hold.
    const struct problem problem = shaped((struct mha_shape){1, 1, 1, 13, 3, 16}, MHA_MASK_CAUSAL);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "nan");
    if (stage_run(&stage, kernel)) {
        expect_zeros(kernel, &stage, 10);
    }
    // Visible scores that are all -inf count as none, even where a value is infinite.
    stage_fill(&stage, "normal");
    for (size_t j = 0; j < 3; j++) {
        stage_row(&stage, 1, 0, j)[0] = -INFINITY;
        stage_row(&stage, 2, 0, j)[0] = INFINITY;
    }
    for (size_t r = 0; r < 13; r++) {
        stage_row(&stage, 0, 0, r)[0] = 1.0f;
    }
    if (stage_run(&stage, kernel)) {
        expect_zeros(kernel, &stage, 13);
    }
    stage_free(&stage);
}

static void case_13_without_keys(void **state) {
    (void)state;
    stage_for_each("sdpa", no_keys);
}

// FasterTransformer pull request 524: batch 20, heads 32, seq 2000 overflowed an int32 index. The
// same distances between rows here, in address space alone. Libraries behind peers take strides as
// 32-bit integers.
static void far_rows(const struct mha_kernel *kernel) {
    static const struct mha_shape shapes[] = {{1, 2, 1, 5, 7, 16}, {1, 2, 1, 1, 7, 16}};
    static const struct layout far_apart = {PLACE_FRONT, 0, (size_t)1 << 31, 0};
    for (size_t i = 0; i < 2 && !(kernel->flags & MHA_FLAG_PEER); i++) {
        struct stage stage;
        const struct problem problem = shaped(shapes[i], MHA_MASK_CAUSAL);
        stage_make(&stage, &problem, &far_apart);
        stage_fill(&stage, "normal");
        assert_true(stage_run(&stage, kernel));
        if (stage_judge(&stage) != VERDICT_PASSED) {
            fail_msg("%s: %s", kernel->name, stage.why);
        }
        stage_free(&stage);
    }
}

static void case_14_far_rows(void **state) {
    (void)state;
    if (sizeof(size_t) <= 4 || getenv("MHABENCH_EMULATOR") != NULL) {
        skip();  // an emulator books every page of it, touched or not
    }
    stage_for_each("sdpa", far_rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_04_narrow_band),
        cmocka_unit_test(case_05_nan_behind_the_mask),
        cmocka_unit_test(case_10_head_dim_80_37_96_100),
        cmocka_unit_test(case_11_12_interleaved_heads),
        cmocka_unit_test(case_13_without_keys),
        cmocka_unit_test(case_14_far_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
