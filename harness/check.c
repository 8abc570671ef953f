/// The worker's side of `mhabench check`: every kernel of a task over every data class, in layouts
/// that notice stray accesses, cut into items in several ways.
///
/// Job:    "tasks": [{"id", "problem", "kernels": [name, ...], "lean": bool}]
/// Events: {"event": "start", "task", "kernel", "what"} before each run;
///         {"event": "verdict", "task", "kernel", "verdict", "max_ulp", "bound_share",
///          "checked_share", "reason", "runs"} once per task and kernel;
///         {"event": "task", "task"} when a task is complete.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffers.h"
#include "data.h"
#include "diag.h"
#include "oracle.h"
#include "protocol.h"
#include "team.h"
#include "worker.h"

/// Above this size a problem gets one layout per class in place of three.
#define LARGE_BYTES ((double)(16 << 20))

/// Ways to cut a problem into items.
enum cut { CUT_WHOLE, CUT_FINE, CUT_THREADS, CUT_COUNT };

/// What is known of one kernel in this task so far.
struct standing {
    const struct mha_kernel *kernel;
    enum verdict verdict;
    double max_ulp, bound_share, checked_share;
    size_t runs;
    size_t trusted;  ///< Runs whose data could tell right from wrong.
    char reason[700];
};

struct task {
    const struct worker *worker;
    json_int_t id;
    struct problem problem;
    const struct op_driver *driver;
    struct tensor_shape shapes[OP_TENSORS_MAX];
    size_t tensors;
    struct standing *standings;
    size_t kernels;
    bool lean;
    bool large;
    unsigned turn;  ///< Counts layouts, so that offsets and cuts take turns.
};

/// One filling of a task's tensors in one layout.
struct scene {
    struct buffer buffers[OP_TENSORS_MAX];
    struct tensor tensors[OP_TENSORS_MAX];
    struct layout layout;
};

static void scene_free(struct scene *scene, size_t count) {
    for (size_t i = 0; i < count; i++) {
        buffer_free(&scene->buffers[i]);
    }
}

static bool scene_make(struct scene *scene, const struct task *task, const struct data_class *data,
                       size_t shift, const struct layout *layout) {
    memset(scene, 0, sizeof(*scene));
    scene->layout = *layout;
    for (size_t i = 0; i < task->tensors; i++) {
        struct buffer *b = &scene->buffers[i];
        if (!buffer_make(b, &task->shapes[i], layout)) {
            scene_free(scene, task->tensors);
            return false;
        }
        scene->tensors[i] = b->tensor;
        if (task->shapes[i].role == TENSOR_INPUT) {
            buffer_poison(b);
            for (size_t p = 0; p < task->shapes[i].planes; p++) {
                data_fill_rows(data, task->worker->seed, shift, i, &b->tensor, p, 0,
                               task->shapes[i].rows);
            }
            buffer_protect(b, true);  // a kernel that writes to its input faults
        }
    }
    return true;
}

static void fail(struct standing *standing, const char *text) {
    standing->verdict = VERDICT_FAILED;
    snprintf(standing->reason, sizeof(standing->reason), "%s", text);
}

/// Runs one kernel once and judges it. `in_place` puts the first input into the output's memory.
static void run_once(const struct task *task, struct scene *scene, const struct oracle *oracle,
                     struct standing *standing, enum cut cut, bool in_place, const char *what) {
    struct buffer *out = &scene->buffers[task->tensors - 1];
    struct tensor tensors[OP_TENSORS_MAX];
    memcpy(tensors, scene->tensors, sizeof(tensors));
    buffer_poison(out);
    if (in_place) {
        const struct tensor *in = &scene->tensors[0];
        for (size_t p = 0; p < in->shape.planes; p++) {
            for (size_t r = 0; r < in->shape.rows; r++) {
                memcpy(tensor_row(&out->tensor, p, r), tensor_row(in, p, r),
                       in->shape.cols * sizeof(float));
            }
        }
        tensors[0].data = out->tensor.data;
    }
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s, s:s}", "event", "start", "task", task->id, "kernel",
                            standing->kernel->name, "what", what));
    const int threads = cut == CUT_THREADS ? task->worker->threads_allowed : 1;
    const size_t block =
        cut == CUT_FINE ? (standing->kernel->row_multiple ? standing->kernel->row_multiple : 1) : 0;
    struct team_case c;
    const struct tensor *copies[1] = {tensors};
    char text[512];
    if (!team_case_make(&c, task->driver, standing->kernel, &task->problem, threads, 1, copies,
                        block, true, text, sizeof(text))) {
        fail(standing, text);
        return;
    }
    team_case_call(&c, 0);
    team_case_free(&c);
    standing->runs++;
    char line[700];
    if (!buffer_intact(out, text, sizeof(text))) {
        snprintf(line, sizeof(line), "%s: %s", what, text);
        fail(standing, line);
        return;
    }
    struct judgement j;
    oracle_judge(oracle, &out->tensor, 1, &j);
    standing->max_ulp = fmax(standing->max_ulp, j.max_ulp);
    standing->bound_share = fmax(standing->bound_share, j.bound_share);
    standing->checked_share = fmin(standing->checked_share, oracle->checked_share);
    standing->trusted += j.verdict == VERDICT_PASSED;
    if (j.verdict == VERDICT_FAILED) {
        snprintf(line, sizeof(line), "%s: %s", what, j.reason);
        fail(standing, line);
    } else if (j.verdict == VERDICT_MISTRUSTED && standing->trusted == 0) {
        snprintf(standing->reason, sizeof(standing->reason), "%s", j.reason);
    }
}

/// Picks layout number `i` of three: end at a guard page; start at one, with gaps; an odd base
/// address with other gaps. The offsets go through 4 ... 60 bytes as turns go by.
static struct layout pick_layout(unsigned i, unsigned turn) {
    switch (i % 3) {
        case 0:
            return (struct layout){PLACE_BACK, 0, 0, 0};
        case 1:
            return (struct layout){PLACE_FRONT, 0, turn % 5, turn % 3};
        default:
            return (struct layout){PLACE_FRONT, 4 + 4 * (size_t)(turn % 15), 1 + turn % 7,
                                   turn % 2};
    }
}

static void run_class(struct task *task, const struct data_class *data, size_t shift) {
    struct oracle oracle = {0};
    const unsigned layouts = task->large || (task->lean && shift > 0) ? 1 : 3;
    for (unsigned i = 0; i < layouts; i++, task->turn++) {
        const struct layout layout = pick_layout(layouts == 1 ? task->turn : i, task->turn);
        struct scene scene;
        if (!scene_make(&scene, task, data, shift, &layout) ||
            (i == 0 && !oracle_make(&oracle, task->driver, &task->problem, scene.tensors, data,
                                    task->worker->seed, task->worker->threads_allowed))) {
            for (size_t k = 0; k < task->kernels; k++) {
                fail(&task->standings[k], "no memory for the problem's tensors");
            }
            break;
        }
        const enum cut cut = (enum cut)(task->turn % CUT_COUNT);
        static const char *const cut_names[CUT_COUNT] = {"whole", "fine", "threads"};
        char what[160];
        for (size_t k = 0; k < task->kernels; k++) {
            struct standing *standing = &task->standings[k];
            if (standing->verdict != VERDICT_PASSED) {
                continue;
            }
            snprintf(what, sizeof(what), "data %s, shift %zu, %s%zu, gaps %zu, items %s",
                     data->name, shift,
                     layout.placement == PLACE_BACK ? "ends at a guard page, offset " : "offset ",
                     layout.offset_bytes, layout.row_pad, cut_names[cut]);
            run_once(task, &scene, &oracle, standing, cut, false, what);
            if (i == 0 && (standing->kernel->flags & MHA_FLAG_IN_PLACE) &&
                standing->verdict == VERDICT_PASSED) {
                snprintf(what, sizeof(what), "data %s, shift %zu, in place", data->name, shift);
                run_once(task, &scene, &oracle, standing, cut, true, what);
            }
        }
        scene_free(&scene, task->tensors);
    }
    oracle_free(&oracle);
}

/// Largest step of the task's kernels: lanes and tails repeat with it.
static size_t largest_step(const struct task *task) {
    size_t step = 16;
    for (size_t k = 0; k < task->kernels; k++) {
        const size_t s = task->standings[k].kernel->step;
        step = s > step ? s : step;
    }
    return step;
}

static void run_task(struct task *task) {
    const size_t rows = task->shapes[0].rows, cols = task->shapes[0].cols;
    const size_t lanes = 2 * largest_step(task) + 1;
    for (size_t i = 0; task->driver->classes[i]; i++) {
        const struct data_class *data = data_class_find(task->driver->classes[i]);
        if (task->lean && i > 0 && !(data->special && data->per_lane)) {
            continue;
        }
        if (!data->per_lane || task->large) {
            run_class(task, data, 0);
            continue;
        }
        // Even rows hold the special value at column (row + shift): pairs of shifts, a block of
        // rows apart, put it at every column that a main loop or tail can have.
        const size_t limit = cols < lanes ? cols : lanes;
        const size_t stride = rows > 2 ? (rows + 1) / 2 * 2 : 2;
        for (size_t shift = 0; shift < limit; shift += stride) {
            run_class(task, data, shift);
            if (shift + 1 < limit) {
                run_class(task, data, shift + 1);
            }
        }
        if (limit == 0) {
            run_class(task, data, 0);
        }
    }
}

static void send_verdict(const struct task *task, const struct standing *standing) {
    protocol_send(
        WORKER_EVENT_FD,
        json_pack("{s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:s, s:I}", "event", "verdict", "task",
                  task->id, "kernel", standing->kernel->name, "verdict",
                  verdict_text(standing->verdict), "max_ulp", protocol_real(standing->max_ulp),
                  "bound_share", protocol_real(standing->bound_share), "checked_share",
                  protocol_real(standing->checked_share), "reason", standing->reason, "runs",
                  (json_int_t)standing->runs));
}

static void do_task(struct worker *worker, const json_t *json) {
    struct task task = {
        .worker = worker,
        .id = protocol_get_integer(json, "id"),
        .lean = json_is_true(json_object_get(json, "lean")),
    };
    if (!protocol_problem_from_json(json_object_get(json, "problem"), &task.problem)) {
        return;
    }
    task.turn = (unsigned)task.id;
    task.driver = op_find(task.problem.op);
    task.tensors = task.driver->tensors(&task.problem, task.shapes);
    double bytes = 0;
    for (size_t i = 0; i < task.tensors; i++) {
        bytes += (double)buffer_bytes(&task.shapes[i], &layout_dense);
    }
    task.large = bytes > LARGE_BYTES;
    const json_t *names = json_object_get(json, "kernels");
    task.standings = diag_alloc(calloc(json_array_size(names) + 1, sizeof(*task.standings)));
    const struct mha_mask mask = problem_mask(&task.problem, 0);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const struct loaded_kernel *loaded =
            library_find(&worker->table, json_string_value(json_array_get(names, i)));
        if (!loaded) {
            continue;
        }
        struct standing *standing = &task.standings[task.kernels++];
        standing->kernel = loaded->kernel;
        standing->verdict = VERDICT_PASSED;
        standing->checked_share = 1;
        const char *why = "the kernel does not take this shape";
        if (loaded->kernel->supports &&
            !loaded->kernel->supports(&task.problem.shape, &mask, &why)) {
            standing->verdict = VERDICT_UNSUPPORTED;
            snprintf(standing->reason, sizeof(standing->reason), "%s", why);
        }
    }
    run_task(&task);
    const bool trivial = task.driver->trivial && task.driver->trivial(&task.problem);
    for (size_t k = 0; k < task.kernels; k++) {
        struct standing *standing = &task.standings[k];
        if (standing->verdict == VERDICT_PASSED && standing->trusted == 0 && !trivial) {
            standing->verdict = VERDICT_MISTRUSTED;
        } else if (standing->verdict == VERDICT_PASSED) {
            standing->reason[0] = '\0';
        }
        send_verdict(&task, standing);
    }
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:I}", "event", "task", "task", task.id));
    free(task.standings);
}

void worker_check(struct worker *worker) {
    const json_t *tasks = json_object_get(worker->job, "tasks");
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        do_task(worker, json_array_get(tasks, i));
    }
}
