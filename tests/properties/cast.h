/// Layers, each with one kernel that is looked at in it, and problems with their bounds.
#ifndef MHA_CAST_H
#define MHA_CAST_H

#include "stage.h"

/// A problem's tensors, with what its results must be.
struct scene {
    struct stage stage;
    struct oracle oracle;  ///< Of every row.
    bool judged;
};

/// Makes a problem's tensors, filled with normal data.
void scene_make(struct scene *scene, const struct problem *problem);

/// Computes the results and bounds, once the inputs are as they shall be.
void scene_judge(struct scene *scene);

/// Gets the bound of one element of the output.
double scene_bound(const struct scene *scene, size_t plane, size_t row, size_t col);
double scene_want(const struct scene *scene, size_t plane, size_t row, size_t col);

/// Runs the kernel. Fails the test when it does not take the problem.
void scene_run(struct scene *scene, const struct mha_kernel *kernel);

/// Tells whether two rows of outputs that are the same number in exact arithmetic are so within
/// their bounds.
bool scene_rows_agree(const struct scene *a, size_t row_a, const struct scene *b, size_t row_b);

void scene_free(struct scene *scene);

/// Makes a layer's problem.
struct problem layer_problem(size_t heads, size_t kv_heads, size_t head_dim, size_t seq,
                             const char *position, const char *mask);

/// Calls `test` with a layer for every kernel that runs here and is a step of this problem, the
/// kernel in its place; of every form (unfused, fused) that has the step. `context` is handed on.
void layer_for_each(const struct problem *problem,
                    void (*test)(void *context, const struct mha_kernel *layer, const char *kernel),
                    void *context);

/// Gets an unfused layer that runs here, with one of wrong_kernels in it.
const struct mha_kernel *layer_with_wrong(const char *name);

/// Calls `test` with every kernel of an op that runs here.
void kernel_for_each(const char *op, void (*test)(void *context, const struct mha_kernel *kernel),
                     void *context);

#endif
