/// The whole layer: its oracle beside the formulas of the literature written out, its pipelines
/// beside each other, and decoding beside the same tokens at once.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "ops/mha.h"
#include "pipeline.h"
#include "position_tables.h"
#include "stage.h"
#include "team.h"

static const char *const positions[] = {"none",      "sinusoid", "learned", "rope",
                                        "rope:half", "alibi",    "t5",      "t5:causal"};
static const char *const masks[] = {"none", "causal", "lengths", "window:3"};
enum {
    POSITIONS = sizeof(positions) / sizeof(positions[0]),
    MASKS = sizeof(masks) / sizeof(masks[0])
};

static struct problem layer(struct mha_shape shape, const char *mask, const char *position) {
    struct problem problem = {.op = "mha", .dtype = "f32", .shape = shape};
    assert_true(problem_mask_parse(&problem, mask));
    assert_true(problem_position_parse(&problem, position));
    return problem;
}

/// Gaps between rows, so that a step that takes them for dense is seen.
static const struct layout gaps = {PLACE_FRONT, 4, 3, 5};

static void make(struct stage *stage, struct mha_shape shape, const char *mask,
                 const char *position) {
    const struct problem problem = layer(shape, mask, position);
    stage_make(stage, &problem, &gaps);
    stage_fill(stage, "normal");
}

static void make_oracle(struct oracle *oracle, struct stage *stage) {
    assert_true(oracle_make(oracle, stage->driver, &stage->problem, stage->tensors,
                            data_class_find("normal"), 1, 1));
}

// --- the oracle
// --------------------------------------------------------------------------------------

/// One element of x W for a token, by the definition.
static double projected(const struct stage *s, size_t token, size_t column) {
    const struct mha_places at = mha_places(&s->problem);
    const size_t row = token % s->problem.shape.seq_q;
    double sum = 0;
    for (size_t i = 0; i < mha_depth(&s->problem); i++) {
        const double added = at.added ? (double)stage_row(s, at.added, 0, row)[i] : 0;
        sum += ((double)stage_row(s, at.x, 0, token)[i] + added) *
               (double)stage_row(s, at.w_qkv, 0, i)[column];
    }
    return sum;
}

/// A query, key or value of one token: columns from `first` on, rotated by its position if asked.
static void head_of(const struct stage *s, size_t token, size_t first, bool rotates, double *head) {
    const size_t dim = s->problem.shape.head_dim, pairs = dim / 2;
    const struct position *p = &s->problem.position;
    for (size_t i = 0; i < dim; i++) {
        head[i] = projected(s, token, first + i);
    }
    const size_t place = mha_past(&s->problem) + token % s->problem.shape.seq_q;
    for (size_t i = 0; rotates && p->kind == POSITION_ROPE && i < pairs; i++) {
        const double angle = (double)place * pow(p->base, -2 * (double)i / (double)dim);
        double *a = &head[p->half ? i : 2 * i], *b = &head[p->half ? i + pairs : 2 * i + 1];
        const double x = *a, y = *b;
        *a = x * cos(angle) - y * sin(angle);
        *b = x * sin(angle) + y * cos(angle);
    }
}

enum { DIM_MAX = 16 };

/// The context of one head of one token.
static void context_of(const struct stage *s, size_t token, size_t head, double *context) {
    const struct mha_shape *shape = &s->problem.shape;
    const struct mha_places at = mha_places(&s->problem);
    const size_t dim = shape->head_dim, past = mha_past(&s->problem);
    const size_t batch = token / shape->seq_q, query = token % shape->seq_q;
    const size_t kv = head / (shape->heads / shape->kv_heads);
    const size_t k_first = (shape->heads + kv) * dim;
    const size_t v_first = k_first + shape->kv_heads * dim;
    const struct mha_mask mask = problem_mask(&s->problem, batch);
    const struct mha_span span = mha_row_span(&mask, query);
    const struct mha_bias bias =
        position_bias(&s->problem, head, at.bias ? &s->tensors[at.bias] : NULL);
    double q[DIM_MAX], k[DIM_MAX], v[DIM_MAX], sum = 0;
    head_of(s, token, head * dim, true, q);
    memset(context, 0, dim * sizeof(*context));
    for (size_t j = span.begin; j < span.end; j++) {
        for (size_t i = 0; i < dim && j < past; i++) {
            k[i] = (double)stage_row(s, at.past_k, batch * shape->kv_heads + kv, j)[i];
            v[i] = (double)stage_row(s, at.past_v, batch * shape->kv_heads + kv, j)[i];
        }
        if (j >= past) {
            head_of(s, batch * shape->seq_q + j - past, k_first, true, k);
            head_of(s, batch * shape->seq_q + j - past, v_first, false, v);
        }
        double score = position_bias_at(&bias, 0, query, j);
        for (size_t i = 0; i < dim; i++) {
            score += q[i] * k[i] / sqrt((double)dim);
        }
        sum += exp(score);
        for (size_t i = 0; i < dim; i++) {
            context[i] += exp(score) * v[i];
        }
    }
    for (size_t i = 0; i < dim && sum > 0; i++) {
        context[i] /= sum;
    }
}

/// Of float tables and a float scale, against exact ones: a few units of 2^-24 of numbers near 1,
/// times at most 16 positions of a rotation.
#define FORMULA_TOLERANCE 1e-5

static void the_oracle_is_the_formula(void **state) {
    (void)state;
    static const struct mha_shape shapes[] = {
        {2, 4, 2, 3, 3, 6}, {2, 2, 2, 3, 7, 5}, {1, 3, 1, 1, 9, 4}, {1, 1, 1, 5, 5, 16}};
    for (size_t c = 0; c < sizeof(shapes) / sizeof(shapes[0]) * POSITIONS * MASKS; c++) {
        struct stage s;
        struct oracle oracle;
        make(&s, shapes[c / POSITIONS / MASKS], masks[c % MASKS], positions[c / MASKS % POSITIONS]);
        make_oracle(&oracle, &s);
        const size_t depth = mha_depth(&s.problem), dim = s.problem.shape.head_dim;
        double *joined = calloc(depth, sizeof(*joined));
        assert_non_null(joined);
        for (size_t r = 0; r < oracle.count; r++) {
            for (size_t h = 0; h < s.problem.shape.heads; h++) {
                context_of(&s, oracle.rows[r], h, joined + h * dim);
            }
            for (size_t o = 0; o < depth; o++) {
                double want = 0;
                for (size_t i = 0; i < depth; i++) {
                    want += joined[i] * (double)stage_row(&s, 2, 0, i)[o];
                }
                assert_true(fabs(want - oracle.want[r * depth + o]) <= FORMULA_TOLERANCE);
                assert_true(oracle.bound[r * depth + o] >= 0x1p-126);
            }
        }
        free(joined);
        oracle_free(&oracle);
        stage_free(&s);
    }
}

/// At a large model's width: an output of zeros, or of the wrong row, is far outside the bounds.
static void the_bound_tells_right_from_wrong(void **state) {
    (void)state;
    struct stage s;
    struct oracle oracle;
    make(&s, (struct mha_shape){1, 12, 12, 32, 32, 64}, "none", "none");
    make_oracle(&oracle, &s);
    size_t outside = 0, elements = oracle.count * oracle.cols;
    for (size_t i = 0; i < elements; i++) {
        outside += fabs(oracle.want[i]) > oracle.bound[i];
    }
    // Half of them are as certain as anything; it is most.
    assert_true(2 * outside > elements);
    oracle_free(&oracle);
    stage_free(&s);
}

// --- the pipelines
// ----------------------------------------------------------------------------------

/// Runs all pipelines; each is right, and any two agree within the sum of their bounds.
static void run_all(struct stage *s) {
    struct oracle oracle;
    make_oracle(&oracle, s);
    const struct tensor *y = stage_output(s);
    float *first = NULL;
    size_t ran = 0;
    for (size_t i = 0; stage_kernel("mha", i) != NULL; i++) {
        const struct mha_kernel *kernel = stage_kernel("mha", i);
        struct judgement j;
        assert_true(stage_run(s, kernel));
        oracle_judge(&oracle, y, 1, &j);
        // Zeros are right where no query sees a key.
        if (j.verdict != VERDICT_PASSED &&
            !(j.verdict == VERDICT_MISTRUSTED && s->driver->trivial(&s->problem))) {
            fail_msg("%s: %s: %s", kernel->name, verdict_text(j.verdict), j.reason);
        }
        if (!first) {
            first = calloc(oracle.count * oracle.cols, sizeof(*first));
            assert_non_null(first);
        }
        for (size_t r = 0; r < oracle.count; r++) {
            const float *row = tensor_row(y, 0, oracle.rows[r]);
            for (size_t c = 0; c < oracle.cols; c++) {
                const size_t at = r * oracle.cols + c;
                first[at] = ran > 0 ? first[at] : row[c];
                assert_true(fabs((double)first[at] - (double)row[c]) <= 2 * oracle.bound[at]);
            }
        }
        ran++;
    }
    assert_true(ran >= 2);  // fused and unfused, in plain C, run everywhere
    free(first);
    oracle_free(&oracle);
}

static void pipelines_agree(void **state) {
    (void)state;
    static const struct mha_shape shapes[] = {
        {1, 2, 2, 9, 9, 16}, {2, 4, 2, 5, 11, 16}, {3, 2, 1, 1, 17, 7}, {1, 3, 3, 33, 33, 37}};
    for (size_t c = 0; c < sizeof(shapes) / sizeof(shapes[0]) * POSITIONS * MASKS; c++) {
        struct stage s;
        make(&s, shapes[c / POSITIONS / MASKS], masks[c % MASKS], positions[c / MASKS % POSITIONS]);
        run_all(&s);
        stage_free(&s);
    }
}

static void times_are_of_every_step(void **state) {
    (void)state;
    struct stage s;
    make(&s, (struct mha_shape){1, 2, 2, 33, 33, 16}, "causal", "rope");
    const struct mha_kernel *kernel = stage_kernel("mha", 0);
    const struct tensor *copies[1] = {s.tensors};
    struct team_case c;
    double ns[OP_STEPS_MAX];
    assert_true(team_case_make(&c, s.driver, kernel, &s.problem, 2, 1, copies, 0, false, s.why,
                               sizeof(s.why)));
    // Projection, three splits, two rotations, and what the form has between them and the end.
    assert_true(c.steps >= 9);
    team_case_call_steps(&c, 0, ns);
    for (size_t i = 0; i < c.steps; i++) {
        assert_true(ns[i] > 0);
        assert_ptr_equal(c.step[i].team.kernel, pipeline_part(kernel, c.step[i].problem.op));
    }
    assert_int_equal(c.ran, 2);
    team_case_free(&c);
    stage_free(&s);
}

/// A weight is packed once for all cases of a kernel, and belongs to none of them alone.
static void packed_weights_are_shared(void **state) {
    (void)state;
    struct stage s;
    make(&s, (struct mha_shape){1, 2, 2, 9, 9, 16}, "none", "none");
    struct oracle oracle;
    make_oracle(&oracle, &s);
    const struct tensor *copies[1] = {s.tensors};
    for (size_t i = 0; stage_kernel("mha", i) != NULL; i++) {
        struct team_case a, b;
        struct judgement j;
        struct team_case *const both[] = {&a, &b};
        for (size_t k = 0; k < 2; k++) {
            assert_true(team_case_make(both[k], s.driver, stage_kernel("mha", i), &s.problem,
                                       (int)k + 1, 1, copies, 0, false, s.why, sizeof(s.why)));
        }
        assert_ptr_equal(a.step[0].team.constant, b.step[0].team.constant);
        team_case_call(&a, 0);
        team_case_free(&a);
        buffer_poison(&s.buffers[s.count - 1]);
        team_case_call(&b, 0);
        oracle_judge(&oracle, stage_output(&s), 1, &j);
        assert_int_equal(j.verdict, VERDICT_PASSED);
        team_case_free(&b);
    }
    oracle_free(&oracle);
    stage_free(&s);
}

// --- decoding
// ----------------------------------------------------------------------------------------

/// Copies the last tokens of `all` into `few`, and the keys and values of the first into its cache.
static void cut(const struct stage *all, const struct stage *few) {
    const struct mha_places from = mha_places(&all->problem), to = mha_places(&few->problem);
    const struct mha_shape *s = &few->problem.shape;
    const size_t past = mha_past(&few->problem), depth = mha_depth(&few->problem);
    const size_t dim = s->head_dim;
    double head[DIM_MAX];
    for (size_t i = 0; i < depth; i++) {
        memcpy(stage_row(few, to.w_qkv, 0, i), stage_row(all, from.w_qkv, 0, i),
               mha_outputs(&few->problem) * sizeof(float));
        memcpy(stage_row(few, to.w_out, 0, i), stage_row(all, from.w_out, 0, i),
               depth * sizeof(float));
    }
    if (to.added) {
        for (size_t t = 0; t < s->seq_q; t++) {
            memcpy(stage_row(few, to.added, 0, t), stage_row(all, from.added, 0, past + t),
                   depth * sizeof(float));
        }
    }
    for (size_t h = 0; to.bias && all->problem.position.kind == POSITION_T5 && h < s->heads; h++) {
        memcpy(stage_row(few, to.bias, 0, h), stage_row(all, from.bias, 0, h),
               MHA_T5_BUCKETS * sizeof(float));
    }
    for (size_t b = 0; b < s->batch; b++) {
        for (size_t t = 0; t < s->seq_q; t++) {
            memcpy(stage_row(few, to.x, 0, b * s->seq_q + t),
                   stage_row(all, from.x, 0, b * s->seq_kv + past + t), depth * sizeof(float));
        }
        for (size_t h = 0; h < s->kv_heads; h++) {
            for (size_t j = 0; j < past; j++) {
                const size_t token = b * s->seq_kv + j, plane = b * s->kv_heads + h;
                head_of(all, token, depth + h * dim, true, head);
                for (size_t i = 0; i < dim; i++) {
                    stage_row(few, to.past_k, plane, j)[i] = (float)head[i];
                }
                head_of(all, token, depth + (s->kv_heads + h) * dim, false, head);
                for (size_t i = 0; i < dim; i++) {
                    stage_row(few, to.past_v, plane, j)[i] = (float)head[i];
                }
            }
        }
    }
}

/// The last tokens of a causal sequence get the same output from a cache of the first ones' keys
/// and values as in one go. The cache is rounded to float, which the layer's own bound for computed
/// keys allows for more than once.
static void decoding_continues_a_sequence(void **state) {
    (void)state;
    for (size_t p = 0; p < POSITIONS; p++) {
        struct stage all, few;
        make(&all, (struct mha_shape){2, 4, 2, 9, 9, 6}, "causal", positions[p]);
        make(&few, (struct mha_shape){2, 4, 2, 2, 9, 6}, "causal", positions[p]);
        cut(&all, &few);
        struct oracle whole;
        make_oracle(&whole, &all);
        for (size_t i = 0; stage_kernel("mha", i) != NULL; i++) {
            assert_true(stage_run(&few, stage_kernel("mha", i)));
            for (size_t b = 0; b < 2; b++) {
                for (size_t t = 0; t < 2; t++) {
                    const float *got = tensor_row(stage_output(&few), 0, b * 2 + t);
                    const size_t row = b * 9 + 7 + t;
                    for (size_t c = 0; c < whole.cols; c++) {
                        const size_t at = row * whole.cols + c;
                        assert_true(fabs((double)got[c] - whole.want[at]) <= 2 * whole.bound[at]);
                    }
                }
            }
        }
        oracle_free(&whole);
        stage_free(&all);
        stage_free(&few);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oracle_is_the_formula),
        cmocka_unit_test(the_bound_tells_right_from_wrong),
        cmocka_unit_test(pipelines_agree),
        cmocka_unit_test(times_are_of_every_step),
        cmocka_unit_test(packed_weights_are_shared),
        cmocka_unit_test(decoding_continues_a_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
