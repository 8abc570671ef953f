/// Fused attention: what it needs beside its inputs and outputs, that a row's bits depend on the
/// row alone, and scores that try the online softmax.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "presets.h"
#include "stage.h"
#include "team.h"

static const struct layout at_end = {PLACE_BACK, 0, 0, 0};

static struct problem shaped(struct mha_shape shape, enum mha_mask_kind mask) {
    return (struct problem){.op = "sdpa",
                            .dtype = "f32",
                            .shape = shape,
                            .mask = mask,
                            .window = mask == MHA_MASK_WINDOW ? 10 : 0};
}

static size_t workspace_of(const struct mha_kernel *kernel, struct mha_shape shape) {
    return kernel->workspace_bytes != NULL ? kernel->workspace_bytes(&shape) : 0;
}

static size_t packed_of(const struct mha_kernel *kernel, struct mha_shape shape) {
    return kernel->packed_bytes != NULL ? kernel->packed_bytes(&shape) : 0;
}

// --- memory ------------------------------------------------------------------------------------

/// Threads of a large machine of today.
enum { THREADS = 256 };

/// What a process needs at most: a workspace for each thread, and every kv head packed at once.
static double memory_of(const struct mha_kernel *kernel, struct mha_shape shape) {
    return (double)workspace_of(kernel, shape) * THREADS +
           (double)packed_of(kernel, shape) * (double)(shape.batch * shape.kv_heads);
}

static void kernel_is_small(const struct mha_kernel *kernel) {
    const double gib = 0x1p30;
    const struct mha_shape gpt3 = {1, 96, 96, 4096, 4096, 128};
    if (kernel->flags & MHA_FLAG_PEER) {
        return;
    }
    if (!(memory_of(kernel, gpt3) < gib)) {
        fail_msg("%s: %g bytes at 96 heads of 128, seq 4096", kernel->name,
                 memory_of(kernel, gpt3));
    }
    // Blocks know of no sequence: it may be as long as it likes.
    struct mha_shape longer = gpt3;
    longer.seq_q = longer.seq_kv = (size_t)1 << 24;
    assert_int_equal(workspace_of(kernel, longer), workspace_of(kernel, gpt3));
    // K and V, in whole panels: no score among them.
    const size_t inputs = 2 * longer.seq_kv * longer.head_dim * sizeof(float);
    assert_true(packed_of(kernel, longer) <= inputs);
}

static void memory_at_gpt3(void **state) {
    (void)state;
    stage_for_each("sdpa", kernel_is_small);
}

static void memory_of_presets(void **state) {
    (void)state;
    size_t seen = 0;
    for (size_t p = 0; preset_get(p) != NULL; p++) {
        struct options options = {.command = COMMAND_CHECK};
        char *op[] = {"sdpa"}, *preset[1];
        char name[64];
        snprintf(name, sizeof(name), "%s", preset_get(p)->name);
        preset[0] = name;
        options.ops = (struct string_list){1, op};
        options.presets = (struct string_list){1, preset};
        struct selection selection;
        if (options_select(&options, 1, &selection) != 0) {
            continue;  // a preset that is not for this op
        }
        for (size_t i = 0; i < selection.count; i++) {
            const struct mha_shape shape = selection.problems[i].shape;
            for (size_t k = 0; stage_kernel("sdpa", k) != NULL; k++) {
                const struct mha_kernel *kernel = stage_kernel("sdpa", k);
                if (!(kernel->flags & MHA_FLAG_PEER)) {
                    assert_true(memory_of(kernel, shape) < 0x1p30);
                    seen++;
                }
            }
        }
        selection_free(&selection);
    }
    assert_true(seen > 0);
}

// --- bits --------------------------------------------------------------------------------------

static void run_cut(struct stage *stage, const struct mha_kernel *kernel, size_t rows) {
    const struct tensor *copies[1] = {stage->tensors};
    struct team_case c;
    buffer_poison(&stage->buffers[stage->count - 1]);
    assert_true(team_case_make(&c, stage->driver, kernel, &stage->problem, 1, 1, copies, rows, true,
                               stage->why, sizeof(stage->why)));
    team_case_call(&c, 0);
    team_case_free(&c);
}

/// A row's bits are its own: no tile or item that it falls into with others changes them.
static void cuts_agree(const struct mha_kernel *kernel) {
    static const enum mha_mask_kind masks[] = {MHA_MASK_NONE, MHA_MASK_CAUSAL, MHA_MASK_LENGTHS,
                                               MHA_MASK_WINDOW};
    // In what a compiler makes of C, rows at a block's edge may be fused in another way.
    if (strcmp(kernel->tag, "autovec") == 0 || (kernel->flags & MHA_FLAG_PEER)) {
        return;
    }
    for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
        struct stage stage;
        const struct problem problem = shaped((struct mha_shape){1, 4, 2, 107, 290, 40}, masks[m]);
        stage_make(&stage, &problem, &at_end);
        stage_fill(&stage, "normal");
        run_cut(&stage, kernel, 0);
        const uint64_t whole = buffer_hash(&stage.buffers[stage.count - 1]);
        static const size_t rows[] = {1, 5, 24, 50};
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            run_cut(&stage, kernel, rows[i]);
            if (buffer_hash(&stage.buffers[stage.count - 1]) != whole) {
                fail_msg("%s: mask %d, items of %zu rows: other bits", kernel->name, (int)masks[m],
                         rows[i]);
            }
        }
        stage_free(&stage);
    }
}

static void bits_whatever_the_cut(void **state) {
    (void)state;
    stage_for_each("sdpa", cuts_agree);
}

/// Changing a future token leaves a causal result as it is, bit for bit. A peer may compute in
/// another way where values are not finite: its results are judged.
static void future_is_hidden(const struct mha_kernel *kernel) {
    enum { SEQ = 150, DIM = 24 };
    static const size_t changes[] = {1, 31, 32, 33, 128, 149};
    static float before[SEQ][DIM];
    struct stage stage;
    const struct problem problem =
        shaped((struct mha_shape){1, 1, 1, SEQ, SEQ, DIM}, MHA_MASK_CAUSAL);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    if (!stage_run(&stage, kernel)) {
        stage_free(&stage);
        return;
    }
    for (size_t r = 0; r < SEQ; r++) {
        memcpy(before[r], tensor_row(stage_output(&stage), 0, r), sizeof(before[r]));
    }
    for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++) {
        stage_fill(&stage, "normal");
        for (size_t j = changes[c]; j < SEQ; j++) {
            for (size_t i = 0; i < DIM; i++) {
                stage_row(&stage, 1, 0, j)[i] = i % 2 == 0 ? NAN : 1e30f;
                stage_row(&stage, 2, 0, j)[i] = i % 2 == 0 ? INFINITY : NAN;
            }
        }
        assert_true(stage_run(&stage, kernel));
        if (kernel->flags & MHA_FLAG_PEER) {
            assert_int_equal(stage_judge(&stage), VERDICT_PASSED);
            continue;
        }
        for (size_t r = 0; r < changes[c]; r++) {
            if (memcmp(before[r], tensor_row(stage_output(&stage), 0, r), sizeof(before[r])) != 0) {
                fail_msg("%s: key %zu changed query %zu", kernel->name, changes[c], r);
            }
        }
        assert_true(isnan(tensor_row(stage_output(&stage), 0, changes[c])[0]));
    }
    stage_free(&stage);
}

static void causal_hides_the_future(void **state) {
    (void)state;
    stage_for_each("sdpa", future_is_hidden);
}

// --- scores that try the online softmax --------------------------------------------------------

/// Scores that rise or fall from key to key, so that every block of keys, or none but the first,
/// brings a new maximum; and large ones.
static void hard_scores(void **state) {
    (void)state;
    static const float slopes[] = {0.02f, -0.02f, 0.5f, -0.5f};
    static const float factors[] = {30, 100};
    struct stage stage;
    const struct problem problem = shaped((struct mha_shape){1, 2, 1, 13, 700, 40}, MHA_MASK_NONE);
    stage_make(&stage, &problem, &at_end);
    for (size_t s = 0; s < sizeof(slopes) / sizeof(slopes[0]); s++) {
        stage_fill(&stage, "normal");
        for (size_t j = 0; j < problem.shape.seq_kv; j++) {
            stage_row(&stage, 1, 0, j)[0] = slopes[s] * (float)j;
        }
        for (size_t r = 0; r < problem.shape.heads * problem.shape.seq_q; r++) {
            stage_row(&stage, 0, r / problem.shape.seq_q, r % problem.shape.seq_q)[0] = 6.0f;
        }
        stage_check_all(&stage);
    }
    for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++) {
        stage_fill(&stage, "normal");
        for (size_t r = 0; r < problem.shape.heads * problem.shape.seq_q; r++) {
            float *q = stage_row(&stage, 0, r / problem.shape.seq_q, r % problem.shape.seq_q);
            for (size_t i = 0; i < problem.shape.head_dim; i++) {
                q[i] *= factors[f];
            }
        }
        stage_check_all(&stage);
    }
    stage_free(&stage);
}

/// Grouped queries are heads that share K and V: the same bits as with K and V repeated.
static void group_equals_repeated(const struct mha_kernel *kernel) {
    enum { HEADS = 6, KV = 2, SEQ = 37, DIM = 20 };
    struct stage grouped, repeated;
    if (kernel->flags & MHA_FLAG_PEER) {
        return;
    }
    const struct problem a =
        shaped((struct mha_shape){1, HEADS, KV, SEQ, SEQ, DIM}, MHA_MASK_CAUSAL);
    const struct problem b =
        shaped((struct mha_shape){1, HEADS, HEADS, SEQ, SEQ, DIM}, MHA_MASK_CAUSAL);
    stage_make(&grouped, &a, &at_end);
    stage_make(&repeated, &b, &at_end);
    stage_fill(&grouped, "normal");
    for (size_t t = 0; t < 3; t++) {
        for (size_t h = 0; h < HEADS; h++) {
            for (size_t r = 0; r < SEQ; r++) {
                memcpy(stage_row(&repeated, t, h, r),
                       stage_row(&grouped, t, t == 0 ? h : h / (HEADS / KV), r),
                       DIM * sizeof(float));
            }
        }
    }
    if (stage_run(&grouped, kernel) && stage_run(&repeated, kernel)) {
        for (size_t i = 0; i < (size_t)HEADS * SEQ; i++) {
            if (memcmp(tensor_row(stage_output(&grouped), i / SEQ, i % SEQ),
                       tensor_row(stage_output(&repeated), i / SEQ, i % SEQ),
                       DIM * sizeof(float)) != 0) {
                fail_msg("%s: head %zu, query %zu", kernel->name, i / SEQ, i % SEQ);
            }
        }
    }
    stage_free(&grouped);
    stage_free(&repeated);
}

static void groups_share_keys(void **state) {
    (void)state;
    stage_for_each("sdpa", group_equals_repeated);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_at_gpt3),        cmocka_unit_test(memory_of_presets),
        cmocka_unit_test(bits_whatever_the_cut), cmocka_unit_test(causal_hides_the_future),
        cmocka_unit_test(hard_scores),           cmocka_unit_test(groups_share_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
