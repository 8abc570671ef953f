#include "cast.h"

#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "data.h"
#include "diag.h"
#include "pipeline.h"
#include "wrong.h"

static const struct layout at_end = {PLACE_BACK, 0, 3, 5};

void scene_make(struct scene *scene, const struct problem *problem) {
    memset(scene, 0, sizeof(*scene));
    stage_make(&scene->stage, problem, &at_end);
    stage_fill(&scene->stage, "normal");
}

void scene_judge(struct scene *scene) {
    struct stage *s = &scene->stage;
    assert_true(oracle_make(&scene->oracle, s->driver, &s->problem, s->tensors,
                            data_class_find("normal"), 1, 1));
    assert_true(scene->oracle.checked_share >= 1);
    scene->judged = true;
}

/// Finds an element among the oracle's rows, which may stand in any order.
static size_t place(const struct scene *scene, size_t plane, size_t row, size_t col) {
    const struct oracle *o = &scene->oracle;
    for (size_t i = 0; i < o->count; i++) {
        if (o->planes[i] == plane && o->rows[i] == row) {
            return i * o->cols + col;
        }
    }
    fail_msg("row %zu of plane %zu is not judged", row, plane);
    return 0;
}

double scene_bound(const struct scene *scene, size_t plane, size_t row, size_t col) {
    return scene->oracle.bound[place(scene, plane, row, col)];
}

double scene_want(const struct scene *scene, size_t plane, size_t row, size_t col) {
    return scene->oracle.want[place(scene, plane, row, col)];
}

void scene_run(struct scene *scene, const struct mha_kernel *kernel) {
    if (!stage_run(&scene->stage, kernel)) {
        fail_msg("%s: %s", kernel->name, scene->stage.why);
    }
}

bool scene_rows_agree(const struct scene *a, size_t row_a, const struct scene *b, size_t row_b) {
    const size_t cols = stage_output(&a->stage)->shape.cols;
    const float *got_a = tensor_row(stage_output(&a->stage), 0, row_a);
    const float *got_b = tensor_row(stage_output(&b->stage), 0, row_b);
    const double *bound_a = a->oracle.bound + place(a, 0, row_a, 0);
    const double *bound_b = b->oracle.bound + place(b, 0, row_b, 0);
    for (size_t c = 0; c < cols; c++) {
        const double apart = (double)got_a[c] - (double)got_b[c];
        if (!((apart < 0 ? -apart : apart) <= bound_a[c] + bound_b[c])) {
            return false;
        }
    }
    return true;
}

void scene_free(struct scene *scene) {
    if (scene->judged) {
        oracle_free(&scene->oracle);
    }
    stage_free(&scene->stage);
}

struct problem layer_problem(size_t heads, size_t kv_heads, size_t head_dim, size_t seq,
                             const char *position, const char *mask) {
    struct problem problem = {
        .op = "mha", .dtype = "f32", .shape = {1, heads, kv_heads, seq, seq, head_dim}};
    assert_true(problem_position_parse(&problem, position));
    assert_true(problem_mask_parse(&problem, mask));
    return problem;
}

// --- layers
// --------------------------------------------------------------------------------------------

/// A table with the layers that hold one kernel wherever its step is. Made once and kept.
struct cast {
    const struct mha_kernel *kernel;
    struct kernel_table table;
    struct cast *next;
};

static bool runs(const struct mha_kernel *kernel) {
    const char *why_not = NULL;
    return catalogue_isa_runs(kernel->isa, NULL, &why_not);
}

static const struct kernel_table *cast_of(const struct mha_kernel *kernel) {
    static struct cast *casts;
    for (struct cast *c = casts; c != NULL; c = c->next) {
        if (c->kernel == kernel) {
            return &c->table;
        }
    }
    const struct kernel_table *base = stage_kernels();
    struct cast *c = diag_alloc(calloc(1, sizeof(*c)));
    char with[200], error[700];
    const char *const pairs[] = {with};
    c->kernel = kernel;
    c->table.kernels =
        diag_alloc(calloc(base->count + wrong_kernel_count, sizeof(*c->table.kernels)));
    for (size_t i = 0; i < base->count; i++) {
        // The layers there are have other kernels in them.
        if (strcmp(base->kernels[i].kernel->op, "mha") != 0) {
            c->table.kernels[c->table.count++] = base->kernels[i];
        }
    }
    for (size_t i = 0; i < wrong_kernel_count; i++) {
        c->table.kernels[c->table.count++] =
            (struct loaded_kernel){&wrong_kernels[i], "", "wrong", "", NULL};
    }
    snprintf(with, sizeof(with), "%s=%s", kernel->op, kernel->name);
    if (!pipeline_add(&c->table, 1, pairs, error, sizeof(error))) {
        fail_msg("%s", error);
    }
    c->next = casts;
    casts = c;
    return &c->table;
}

/// Tells whether a layer's problem has the kernel's step, done by that kernel.
static bool has_step(const struct mha_kernel *layer, const struct problem *problem,
                     const struct mha_kernel *kernel) {
    struct op_step steps[OP_STEPS_MAX];
    const size_t count = op_find("mha")->compose(problem, pipeline_form(layer), NULL, NULL, steps);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(steps[i].driver->name, kernel->op) == 0 &&
            pipeline_part(layer, kernel->op) == kernel) {
            return true;
        }
    }
    return false;
}

void layer_for_each(const struct problem *problem,
                    void (*test)(void *context, const struct mha_kernel *layer, const char *kernel),
                    void *context) {
    static const char *const steps[] = {"sinusoid", "qkv_proj", "split",  "rope",     "qk",  "bias",
                                        "softmax",  "pv",       "concat", "out_proj", "sdpa"};
    const struct kernel_table *base = stage_kernels();
    size_t tested = 0;
    for (size_t i = 0; i < base->count; i++) {
        const struct mha_kernel *kernel = base->kernels[i].kernel;
        bool step = false;
        for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
            step = step || strcmp(steps[s], kernel->op) == 0;
        }
        if (!step || !runs(kernel) || strcmp(kernel->dtype, problem->dtype) != 0) {
            continue;
        }
        const struct kernel_table *table = cast_of(kernel);
        for (size_t k = 0; k < table->count; k++) {
            const struct mha_kernel *layer = table->kernels[k].kernel;
            char why[700];
            // The compiler's layer has the same form as the unfused one.
            if (strcmp(layer->op, "mha") == 0 && strcmp(layer->isa, kernel->isa) == 0 &&
                strcmp(layer->tag, "autovec") != 0 && has_step(layer, problem, kernel) &&
                pipeline_supports(layer, problem, why, sizeof(why))) {
                test(context, layer, kernel->name);
                tested++;
            }
        }
    }
    assert_true(tested > 0);
}

const struct mha_kernel *layer_with_wrong(const char *name) {
    const struct mha_kernel *wrong = wrong_kernel(name);
    assert_non_null(wrong);
    const struct kernel_table *table = cast_of(wrong);
    for (size_t i = 0; i < table->count; i++) {
        const struct mha_kernel *layer = table->kernels[i].kernel;
        if (strcmp(layer->op, "mha") == 0 && strcmp(layer->tag, "unfused") == 0 && runs(layer) &&
            pipeline_part(layer, wrong->op) == wrong) {
            return layer;
        }
    }
    fail_msg("no layer that runs here takes %s", name);
    return NULL;
}

void kernel_for_each(const char *op, void (*test)(void *context, const struct mha_kernel *kernel),
                     void *context) {
    assert_non_null(stage_kernel(op, 0));
    for (size_t i = 0; stage_kernel(op, i) != NULL; i++) {
        test(context, stage_kernel(op, i));
    }
}
