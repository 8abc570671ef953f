#include "stage.h"

#include <stdio.h>
#include <string.h>

#include "catalogue.h"
#include "data.h"
#include "pipeline.h"
#include "team.h"

const struct kernel_table *stage_kernels(void) {
    static struct kernel_table table;
    if (table.count == 0) {
        char error[1024];
        if (!library_load(&table, 0, NULL, error, sizeof(error)) ||
            !pipeline_add(&table, 0, NULL, error, sizeof(error))) {
            fail_msg("%s", error);
        }
    }
    return &table;
}

const struct mha_kernel *stage_kernel(const char *op, size_t index) {
    const struct kernel_table *table = stage_kernels();
    for (size_t i = 0; i < table->count; i++) {
        const struct mha_kernel *kernel = table->kernels[i].kernel;
        const char *why_not = NULL;
        if (strcmp(kernel->op, op) == 0 && strcmp(kernel->dtype, "f32") == 0 &&
            catalogue_isa_runs(kernel->isa, NULL, &why_not) && index-- == 0) {
            return kernel;
        }
    }
    return NULL;
}

void stage_for_each(const char *op, void (*test)(const struct mha_kernel *kernel)) {
    assert_non_null(stage_kernel(op, 0));
    for (size_t i = 0; stage_kernel(op, i) != NULL; i++) {
        test(stage_kernel(op, i));
    }
}

void stage_make(struct stage *stage, const struct problem *problem, const struct layout *layout) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    memset(stage, 0, sizeof(*stage));
    stage->problem = *problem;
    stage->driver = op_find(problem->op);
    assert_non_null(stage->driver);
    stage->driver->normalise(&stage->problem);
    stage->count = stage->driver->tensors(&stage->problem, shapes);
    for (size_t i = 0; i < stage->count; i++) {
        assert_true(buffer_make(&stage->buffers[i], &shapes[i], layout));
        stage->tensors[i] = stage->buffers[i].tensor;
        buffer_set_canaries(&stage->buffers[i]);
    }
}

void stage_fill(struct stage *stage, const char *data_class) {
    const struct data_class *data = data_class_find(data_class);
    assert_non_null(data);
    for (size_t i = 0; i + 1 < stage->count; i++) {
        const struct tensor *t = &stage->tensors[i];
        for (size_t p = 0; p < t->shape.planes; p++) {
            op_fill_rows(stage->driver, &stage->problem, data, 1, 0, i, t, p, 0, t->shape.rows);
        }
    }
}

float *stage_row(const struct stage *stage, size_t index, size_t plane, size_t row) {
    return tensor_row(&stage->tensors[index], plane, row);
}

const struct tensor *stage_output(const struct stage *stage) {
    return &stage->tensors[stage->count - 1];
}

bool stage_run(struct stage *stage, const struct mha_kernel *kernel) {
    if (!pipeline_supports(kernel, &stage->problem, stage->why, sizeof(stage->why))) {
        return false;
    }
    struct buffer *out = &stage->buffers[stage->count - 1];
    buffer_poison(out);
    const struct tensor *copies[1] = {stage->tensors};
    struct team_case c;
    if (!team_case_make(&c, stage->driver, kernel, &stage->problem, 1, 1, copies, 0, true,
                        stage->why, sizeof(stage->why))) {
        fail_msg("%s: %s", kernel->name, stage->why);
    }
    team_case_call(&c, 0);
    team_case_free(&c);
    for (size_t i = 0; i < stage->count; i++) {
        if (!buffer_intact(&stage->buffers[i], stage->why, sizeof(stage->why))) {
            fail_msg("%s: %s", kernel->name, stage->why);
        }
    }
    return true;
}

enum verdict stage_judge(struct stage *stage) {
    struct oracle oracle;
    struct judgement j;
    assert_true(oracle_make(&oracle, stage->driver, &stage->problem, stage->tensors,
                            data_class_find("bits"), 1, 1));
    oracle_judge(&oracle, stage_output(stage), 1, &j);
    oracle_free(&oracle);
    snprintf(stage->why, sizeof(stage->why), "%s", j.reason);
    return j.verdict;
}

size_t stage_check_all(struct stage *stage) {
    size_t taken = 0;
    const char *op = stage->problem.op;
    for (size_t i = 0; stage_kernel(op, i) != NULL; i++) {
        const struct mha_kernel *kernel = stage_kernel(op, i);
        if (stage_run(stage, kernel)) {
            taken++;
            const enum verdict verdict = stage_judge(stage);
            if (verdict != VERDICT_PASSED) {
                fail_msg("%s: %s: %s", kernel->name, verdict_text(verdict), stage->why);
            }
        }
    }
    assert_true(taken > 0);
    return taken;
}

void stage_free(struct stage *stage) {
    for (size_t i = 0; i < stage->count; i++) {
        buffer_free(&stage->buffers[i]);
    }
}
