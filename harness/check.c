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

#include "abi_guard.h"
#include "buffers.h"
#include "data.h"
#include "diag.h"
#include "oracle.h"
#include "pipeline.h"
#include "protocol.h"
#include "team.h"
#include "tensors.h"
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
    size_t lanes;    ///< Columns after which its main loops and tails have all been seen.
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
    unsigned turn;  ///< Of the problem: where the turns of layouts and cuts begin.
};

/// How one run is made.
struct way {
    enum cut cut;
    bool backwards;  ///< Items from the last to the first.
    bool in_place;   ///< The first input lies in the output's memory.
    bool again;      ///< Called twice: the bits must be the same.
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
                op_fill_rows(task->driver, &task->problem, data, task->worker->seed, shift, i,
                             &b->tensor, p, 0, task->shapes[i].rows);
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

static void fail_all(struct task *task, const char *text) {
    for (size_t k = 0; k < task->kernels; k++) {
        fail(&task->standings[k], text);
    }
}

/// Runs one kernel and judges it.
static void run_once(const struct task *task, struct scene *scene, const struct oracle *oracle,
                     struct standing *standing, const struct way *way, const char *what) {
    struct buffer *out = &scene->buffers[task->tensors - 1];
    struct tensor tensors[OP_TENSORS_MAX];
    memcpy(tensors, scene->tensors, sizeof(tensors));
    buffer_poison(out);
    if (way->in_place) {
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
    const int threads = way->cut == CUT_THREADS ? task->worker->threads_allowed : 1;
    const size_t block = way->cut == CUT_FINE
                             ? (standing->kernel->row_multiple ? standing->kernel->row_multiple : 1)
                             : 0;
    struct team_case c;
    const struct tensor *copies[1] = {tensors};
    char text[512];
    if (!team_case_make(&c, task->driver, standing->kernel, &task->problem, threads, 1, copies,
                        block, true, text, sizeof(text))) {
        fail(standing, text);
        return;
    }
    c.watched = true;
    c.backwards = way->backwards;
    abi_guard_open_heap();
    team_case_call(&c, 0);
    bool same = true;
    if (way->again) {
        // Into poison again, with what the first call left in the workspace.
        const uint64_t first = buffer_hash(out);
        buffer_poison(out);
        team_case_call(&c, 0);
        same = buffer_hash(out) == first;
    }
    abi_guard_check_heap();  // before the C library stumbles over it
    team_case_inspect(&c);
    snprintf(text, sizeof(text), "%s", c.stray);
    team_case_free(&c);
    standing->runs++;
    char line[700];
    if (text[0] != '\0' || !buffer_intact(out, text, sizeof(text))) {
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
    } else if (!same && !(standing->kernel->flags & MHA_FLAG_NONDETERMINISTIC)) {
        snprintf(line, sizeof(line), "%s: a second call on the same input gave other bits", what);
        fail(standing, line);
    } else if (j.verdict == VERDICT_MISTRUSTED && standing->trusted == 0) {
        snprintf(standing->reason, sizeof(standing->reason), "%s", j.reason);
    }
}

/// Picks layout number `i` of three: end at a guard page; start at one, with gaps; an odd base
/// address with other gaps. The offsets go through 4 ... 60 bytes as turns go by.
static struct layout pick_layout(unsigned i, unsigned turn) {
    switch (i) {
        case 0:
            return (struct layout){PLACE_BACK, 0, 0, 0};
        case 1:
            return (struct layout){PLACE_FRONT, 0, turn % 5, turn % 3};
        default:
            return (struct layout){PLACE_FRONT, 4 + 4 * (size_t)(turn % 15), 1 + turn % 7,
                                   turn % 2};
    }
}

/// Rows so far apart that the offset of the second exceeds a 32-bit int, and that of the third a
/// 32-bit unsigned. It is address space alone: what lies between takes no memory.
static const struct layout layout_far = {PLACE_FRONT, 0, (size_t)1 << 31, 0};

/// Most rows of a tensor that is laid out so: 8 GiB of address space each.
enum { FAR_ROWS = 128 };

static bool fits_far(const struct task *task) {
    // An emulator books every page of it, touched or not.
    bool fits = sizeof(size_t) > 4 && !json_is_true(json_object_get(task->worker->job, "emulated"));
    for (size_t i = 0; i < task->tensors; i++) {
        fits = fits && task->shapes[i].planes * task->shapes[i].rows <= FAR_ROWS;
    }
    return fits;
}

/// Runs every kernel that has passed so far in one scene; the first of a class in place too.
static void run_scene(struct task *task, struct scene *scene, const struct oracle *oracle,
                      size_t shift, const char *where, unsigned turn, bool first, bool again) {
    static const char *const cut_names[CUT_COUNT] = {"whole", "fine", "threads"};
    const struct way way = {(enum cut)(turn % CUT_COUNT), turn / CUT_COUNT % 2, false, again};
    char what[200];
    for (size_t k = 0; k < task->kernels; k++) {
        struct standing *standing = &task->standings[k];
        const bool is_far = scene->layout.row_pad == layout_far.row_pad;
        // Libraries behind peers take strides as 32-bit integers.
        if (standing->verdict != VERDICT_PASSED || shift >= standing->lanes ||
            (is_far && pipeline_has_peer(standing->kernel))) {
            continue;
        }
        snprintf(what, sizeof(what), "%s, items %s%s", where, cut_names[way.cut],
                 way.backwards ? " from the last" : "");
        run_once(task, scene, oracle, standing, &way, what);
        if (first && (standing->kernel->flags & MHA_FLAG_IN_PLACE) &&
            standing->verdict == VERDICT_PASSED) {
            const struct way in_place = {way.cut, way.backwards, true, false};
            snprintf(what, sizeof(what), "%s, in place", where);
            run_once(task, scene, oracle, standing, &in_place, what);
        }
    }
}

/// Runs one class of data. Layouts and cuts follow from the problem, the class and the shift alone:
/// the same problem on its own, as the repeat line has it, sees the same again.
static void run_class(struct task *task, const struct data_class *data, size_t index,
                      size_t shift) {
    struct oracle oracle = {0};
    // 7: prime to the numbers of layouts and cuts, so that every class begins elsewhere.
    const unsigned base = task->turn + 7 * (unsigned)index + (unsigned)shift;
    const bool single = task->large || (task->lean && shift > 0);
    struct layout layouts[4];
    unsigned turns[4];
    size_t count = 0;
    for (unsigned i = 0; i < 3; i++) {
        if (!single || i == base % 3) {
            turns[count] = base + i;
            layouts[count++] = pick_layout(i, base + i);
        }
    }
    if (index == 0 && shift == 0 && fits_far(task)) {
        turns[count] = base + 3;
        layouts[count++] = layout_far;
    }
    for (size_t i = 0; i < count; i++) {
        const struct layout *layout = &layouts[i];
        struct scene scene;
        if (!scene_make(&scene, task, data, shift, layout)) {
            if (i > 0 && layout->row_pad == layout_far.row_pad) {
                break;  // address space is limited; memory is not what it lacks
            }
            fail_all(task, "no memory for the problem's tensors");
            break;
        }
        if (i == 0 && !oracle_make(&oracle, task->driver, &task->problem, scene.tensors, data,
                                   task->worker->seed, task->worker->threads_allowed)) {
            fail_all(task, "no memory for the oracle");
            scene_free(&scene, task->tensors);
            break;
        }
        char where[120];
        snprintf(where, sizeof(where), "data %s, shift %zu, %s%zu, gaps %zu", data->name, shift,
                 layout->placement == PLACE_BACK ? "ends at a guard page, offset " : "offset ",
                 layout->offset_bytes, layout->row_pad);
        // A layout meets every cut in time: the cuts take one step more in three.
        const unsigned turn = turns[i] + turns[i] / 3;
        run_scene(task, &scene, &oracle, shift, where, turn, i == 0, i == 0 && shift == 0);
        scene_free(&scene, task->tensors);
    }
    oracle_free(&oracle);
}

static void run_task(struct task *task) {
    const size_t rows = task->shapes[0].rows, cols = task->shapes[0].cols;
    size_t lanes = 0;
    for (size_t k = 0; k < task->kernels; k++) {
        lanes = task->standings[k].lanes > lanes ? task->standings[k].lanes : lanes;
    }
    static const char *const own[] = {"tensors", NULL};
    const char *const *classes = tensors_take(task->driver) ? own : task->driver->classes;
    for (size_t i = 0; classes[i]; i++) {
        const struct data_class *data = data_class_find(classes[i]);
        if (task->problem.data != NULL
                ? data != data_class_of(task->driver, &task->problem)
                : task->lean && i > 0 && !(data->special && data->per_lane)) {
            continue;
        }
        run_class(task, data, i, 0);
        // Even rows hold the special value at column (row + shift): pairs of shifts, a block of
        // rows apart, put it at every column that a main loop or tail can have.
        const size_t limit = !data->per_lane || task->large ? 0 : cols < lanes ? cols : lanes;
        const size_t stride = rows > 2 ? (rows + 1) / 2 * 2 : 2;
        for (size_t shift = 0; shift < limit; shift += stride) {
            if (shift > 0) {
                run_class(task, data, i, shift);
            }
            if (shift + 1 < limit) {
                run_class(task, data, i, shift + 1);
            }
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

/// A small number that follows from the problem.
static unsigned turn_of(const struct problem *problem) {
    const struct mha_shape *s = &problem->shape;
    const size_t axes[] = {s->batch,  s->heads,    s->kv_heads,           s->seq_q,
                           s->seq_kv, s->head_dim, (size_t)problem->mask, problem->window};
    uint64_t mixed = (uint64_t)problem->position.kind;
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        mixed = data_mix(mixed, axes[i]);
    }
    return (unsigned)(mixed % 90);  // every layout and cut divides 90
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
    task.driver = op_find(task.problem.op);
    task.tensors = task.driver->tensors(&task.problem, task.shapes);
    task.turn = turn_of(&task.problem);
    double bytes = 0;
    for (size_t i = 0; i < task.tensors; i++) {
        bytes += (double)buffer_bytes(&task.shapes[i], &layout_dense);
    }
    task.large = bytes > LARGE_BYTES;
    const json_t *names = json_object_get(json, "kernels");
    task.standings = diag_alloc(calloc(json_array_size(names) + 1, sizeof(*task.standings)));
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
        standing->lanes = 2 * (size_t)(loaded->kernel->step > 16 ? loaded->kernel->step : 16) + 1;
        if (!pipeline_supports(loaded->kernel, &task.problem, standing->reason,
                               sizeof(standing->reason))) {
            standing->verdict = VERDICT_UNSUPPORTED;
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
