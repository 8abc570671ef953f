/// Threads: the one place that has OpenMP pragmas. A team runs a prepared case (a kernel over all
/// the work items of a problem) or any loop of the harness.
#ifndef MHA_TEAM_H
#define MHA_TEAM_H

#include <stdbool.h>
#include <stddef.h>

#include "buffers.h"
#include "op.h"

/// Runs fn(context, i, thread) for every i < count on `threads` threads, in any order.
void team_for(int threads, size_t count, void (*fn)(void *context, size_t i, int thread),
              void *context);

/// Runs fn(context, thread) once on each of `threads` threads. Returns how many threads ran.
int team_each(int threads, void (*fn)(void *context, int thread), void *context);

/// Equal pieces of memory, 64-byte aligned, each for one thread or plane.
struct team_slots {
    unsigned char *map;
    size_t map_bytes;
    unsigned char *first;  ///< NULL when there are none.
    size_t count;
    size_t bytes;  ///< Of one piece.
    size_t stride_bytes;
    bool guarded;
};

/// A packed weight. Cases of the same kernel over the same weight share one, unless guarded.
struct team_constant {
    const struct mha_kernel *kernel;
    const float *weight;      ///< Of the first copy.
    struct team_slots slots;  ///< One a plane and copy.
    bool packed;              ///< That has been done.
    size_t users;
    struct team_constant *next;
};

struct team_step;

/// A kernel bound to a problem's buffers, cut into items for a number of threads; or a pipeline of
/// such cases.
struct team_case {
    const struct op_driver *driver;
    const struct mha_kernel *kernel;
    const struct problem *problem;
    int threads;
    size_t copies;         ///< Copies of the buffers: 1 when hot, more when cold.
    size_t planes;         ///< Of the grid.
    size_t items;          ///< Per copy.
    size_t blocks;         ///< Items per plane.
    union mha_args *args;  ///< [copies * items]
    size_t *item_plane;    ///< [items]
    bool packs;
    bool packs_per_item;  ///< One item per plane: the thread packs right before it runs the item.
    struct team_constant *constant;  ///< A weight: packed before the first item runs, and never
                                     ///< again. NULL: packs anew in every call.
    struct team_slots packed;        ///< One a plane, or one a thread; not of a constant.
    struct team_slots workspace;     ///< One a thread.
    void *state;                     ///< Of create().
    bool watched;    ///< Calls of the kernel go through abi_guard.h; never so when timed.
    bool backwards;  ///< Watched and on one thread: the last item comes first.
    char
        stray[200];  ///< What the kernel broke in watched calls, beside its result; "" for nothing.
    double create_ns;
    int ran;  ///< Threads that the last call really had.
    // a pipeline
    size_t steps;  ///< 0: a kernel.
    struct team_step *step;
    size_t buffers;
    struct team_slots *buffer;  ///< What the steps hand on; one, or one a copy of what is primed.
};

/// One step of a pipeline. All items of a step end before the next begins.
struct team_step {
    struct problem problem;
    struct team_case team;
};

/// Binds a kernel. `tensors` is [copies][the op's tensors]; it and `problem` must outlive the case.
/// `block_rows` forces items of that many rows (rounded up to the kernel's multiple); 0 lets the
/// number of threads decide. Returns false, with a reason in `why`, when memory or create() fails.
/// `guarded` puts workspace and packed operands between pages without access and fills them with
/// NaN.
bool team_case_make(struct team_case *c, const struct op_driver *driver,
                    const struct mha_kernel *kernel, const struct problem *problem, int threads,
                    size_t copies, const struct tensor *const *tensors, size_t block_rows,
                    bool guarded, char *why, size_t why_size);

/// Does what the first call does beside its work, so that a sample may be the first call: packs
/// the weights, and has the system find memory for workspaces, packed operands and what the steps
/// hand on.
void team_case_prepare(struct team_case *c);

/// One call: everything of the problem, on buffer copy `copy`: packing, then all items.
void team_case_call(struct team_case *c, size_t copy);

/// One call of a pipeline that tells the time of each step, ns[steps]. The clock is read between
/// the steps, some 20 ns a time, which is why the samples are of other calls.
void team_case_call_steps(struct team_case *c, size_t copy, double *ns);

/// Packing alone, as one call does it, or as it was done once. Does nothing for a kernel that does
/// not pack.
void team_case_pack(struct team_case *c, size_t copy);

/// Runs the first item alone on this thread, and tells the time of a whole call that follows from
/// it.
double team_case_probe_ns(struct team_case *c);

/// Guarded: looks for damage beside the workspaces and packed operands, and adds it to `stray`.
void team_case_inspect(struct team_case *c);

void team_case_free(struct team_case *c);

/// Monotonic time, not slewed.
double team_now_ns(void);

#endif
