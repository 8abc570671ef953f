/// The worker's side of `ab`: one launch over all rows that are still open.
///
/// Job:    "base", "new": paths; "launch", "seconds" (for all of it), "last_level_bytes",
///         "problems": [{"problem", "rows": [{"id", "kernel", "threads", "pairs", "call_ns",
///         "hash": [base, new]}]}]. A side with a hash was verified in an earlier launch: its
///         output must have these bits.
/// Events: {"event": "kernel", "side", ...} for every kernel when the job has no problems;
///         {"event": "start", "row", "what", "expected_s"} before anything that may crash or hang;
///         {"event": "unsupported", "row", "base", "new", "reason"};
///         {"event": "slow", "row", "reason"}: a call does not fit in what is left;
///         {"event": "bad", "row", "reason"}: a side is wrong;
///         {"event": "pairs", "row", "base": [ns], "new": [ns], "call_ns", "hash": [base, new]}.
///
/// Drawn anew in every launch: the order in which the libraries are loaded, the order of problems
/// and rows, where each tensor lies (random pages and cache lines; the alignment within a line
/// stays that of all timed runs), which side's workspace is mapped first, and the order within
/// every pair. Both sides of a row work on the same tensors.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ab.h"
#include "abi_guard.h"
#include "buffers.h"
#include "calibrate.h"
#include "data.h"
#include "diag.h"
#include "gbench_shim.h"
#include "oracle.h"
#include "pipeline.h"
#include "protocol.h"
#include "stats.h"
#include "team.h"

/// Threads of an ended team spin for a moment before they sleep (see GOMP_SPINCOUNT).
enum { SLEEP_AFTER_TEAM_US = 1500 };

static struct kernel_table libraries[AB_SIDES];

static uint64_t random_seed;

static uint64_t next_random(void) {
    static uint64_t counter = 0;
    return data_mix(random_seed, counter++);
}

static size_t *shuffled(size_t count) {
    size_t *order = diag_alloc(calloc(count + 1, sizeof(*order)));
    for (size_t i = 0; i < count; i++) {
        const size_t j = next_random() % (i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

const char *ab_side_text(enum ab_side side) {
    return side == AB_BASE ? "base" : "new";
}

bool ab_load(const json_t *job, void (*tell)(const char *path), char *error, size_t error_size) {
    random_seed = data_mix((uint64_t)protocol_get_integer(job, "seed"),
                           (uint64_t)protocol_get_integer(job, "launch") + 1);
    const size_t first = next_random() % AB_SIDES;
    for (size_t i = 0; i < AB_SIDES; i++) {
        const enum ab_side side = (enum ab_side)(i == 0 ? first : 1 - first);
        const char *path = protocol_get_string(job, ab_side_text(side));
        tell(path);
        if (!library_load_file(&libraries[side], path, error, error_size) ||
            !pipeline_add(&libraries[side], 0, NULL, error, error_size)) {
            return false;
        }
    }
    tell("");
    return true;
}

// --- one problem's memory
// ------------------------------------------------------------------------------

struct scene {
    const struct worker *worker;
    struct problem problem;
    const struct op_driver *driver;
    size_t tensor_count, copies;
    struct buffer *buffers;              ///< [copies][tensor_count]
    struct tensor *tensors;              ///< [copies][tensor_count]
    const struct tensor **copy_tensors;  ///< [copies]
    size_t next_copy;                    ///< Cold: where the next iteration goes.
    struct oracle oracle;
    bool has_oracle;
};

struct fill {
    const struct op_driver *driver;
    const struct problem *problem;
    const struct data_class *data;
    uint64_t seed;
    size_t index;
    const struct tensor *tensor;
};

static void fill_row(void *context, size_t i, int thread) {
    const struct fill *f = context;
    (void)thread;
    op_fill_rows(f->driver, f->problem, f->data, f->seed, 0, f->index, f->tensor,
                 i / f->tensor->shape.rows, i % f->tensor->shape.rows, 1);
}

static double scene_bytes(const struct tensor_shape *shapes, size_t count) {
    double bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += tensor_bytes(&shapes[i]);
    }
    return bytes;
}

/// Maps and fills the tensors. Returns false when there is no memory for them.
static bool scene_make(struct scene *s) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    const struct data_class *data = data_class_of(s->driver, &s->problem);
    s->tensor_count = s->driver->tensors(&s->problem, shapes);
    const double set_bytes = scene_bytes(shapes, s->tensor_count);
    s->copies = 1;
    if (s->problem.cache == CACHE_COLD) {
        const double last_level = protocol_get_real(s->worker->job, "last_level_bytes");
        s->copies = (size_t)ceil(2 * last_level / fmax(set_bytes, 4096)) + 1;
    }
    const double free_bytes = (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (set_bytes * (double)s->copies > free_bytes / 2) {
        return false;
    }
    const size_t count = s->copies * s->tensor_count;
    s->buffers = diag_alloc(calloc(count + 1, sizeof(*s->buffers)));
    s->tensors = diag_alloc(calloc(count + 1, sizeof(*s->tensors)));
    s->copy_tensors = diag_alloc(calloc(s->copies, sizeof(const struct tensor *)));
    for (size_t i = 0; i < count; i++) {
        // Up to 16 pages and 64 lines from the mapping's start: caches of up to 64 KiB a way, and
        // the store buffer's 4 KiB aliasing, see the tensors in another relation every time.
        const struct layout layout = {
            PLACE_FRONT, 4096 * (size_t)(next_random() % 16) + 64 * (size_t)(next_random() % 64), 0,
            0};
        const size_t t = i % s->tensor_count;
        if (!buffer_make(&s->buffers[i], &shapes[t], &layout)) {
            return false;
        }
        s->tensors[i] = s->buffers[i].tensor;
        s->copy_tensors[i / s->tensor_count] = s->tensors + i / s->tensor_count * s->tensor_count;
        if (shapes[t].role == TENSOR_INPUT) {
            struct fill f = {s->driver, &s->problem, data, s->worker->seed, t, &s->tensors[i]};
            team_for(s->worker->threads_allowed, shapes[t].planes * shapes[t].rows, fill_row, &f);
            buffer_protect(&s->buffers[i], true);
        } else {
            buffer_poison(&s->buffers[i]);
        }
    }
    return true;
}

static void scene_free(struct scene *s) {
    for (size_t i = 0; s->buffers && i < s->copies * s->tensor_count; i++) {
        buffer_free(&s->buffers[i]);
    }
    free(s->buffers);
    free(s->tensors);
    free(s->copy_tensors);
    if (s->has_oracle) {
        oracle_free(&s->oracle);
    }
}

static struct buffer *scene_output(const struct scene *s, size_t copy) {
    return &s->buffers[copy * s->tensor_count + s->tensor_count - 1];
}

// --- one row
// -------------------------------------------------------------------------------------------

/// One side of a row, bound to the tensors.
struct subject {
    struct scene *scene;
    const struct mha_kernel *kernel;
    struct team_case team;
    uint64_t hash;  ///< Of the verified output.
    bool known;     ///< `hash` is set.
    size_t pairs;
    double ns[AB_PAIRS_MAX];
};

struct visit {
    struct scene *scene;
    json_int_t id;
    int threads;
    struct subject sides[AB_SIDES];
    double call_ns;  ///< The slower side's.
    uint64_t iterations;
    char reason[512];
};

static void send_start(const struct visit *v, const char *what, const char *side,
                       double expected_ns) {
    char text[80];
    snprintf(text, sizeof(text), "%s%s%s", what, side[0] ? " " : "", side);
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s, s:o}", "event", "start", "row", v->id, "what", text,
                            "expected_s", protocol_real(expected_ns / 1e9)));
}

static void send_reason(const struct visit *v, const char *event) {
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s}", "event", event, "row", v->id, "reason", v->reason));
}

/// Holds an output against the oracle.
static bool judge(struct scene *s, const struct buffer *out, char *reason, size_t size) {
    if (!s->has_oracle) {
        s->has_oracle = oracle_make(&s->oracle, s->driver, &s->problem, s->copy_tensors[0],
                                    data_class_of(s->driver, &s->problem), s->worker->seed,
                                    s->worker->threads_allowed);
    }
    if (!s->has_oracle) {
        snprintf(reason, size, "no memory for the oracle");
        return false;
    }
    struct judgement j;
    oracle_judge(&s->oracle, &out->tensor, s->worker->threads_allowed, &j);
    snprintf(reason, size, "%s: %s", verdict_text(j.verdict), j.reason);
    return j.verdict == VERDICT_PASSED;
}

/// Tells whether an output is the one that this side must have.
static bool right(struct subject *side, const struct buffer *out, char *reason, size_t size) {
    const uint64_t hash = buffer_hash(out);
    if (!buffer_intact(out, reason, size)) {
        return false;
    }
    if (side->known && side->hash == hash) {
        return true;
    }
    if (!judge(side->scene, out, reason, size)) {
        return false;
    }
    if (side->known && !(side->kernel->flags & MHA_FLAG_NONDETERMINISTIC)) {
        snprintf(reason, size, "the output has other bits than before, on the same input");
        return false;
    }
    side->known = true;
    side->hash = hash;
    return true;
}

/// Runs one side once and verifies what it wrote.
static bool verify(struct visit *v, enum ab_side which) {
    struct subject *side = &v->sides[which];
    struct buffer *out = scene_output(v->scene, 0);
    const char *name = ab_side_text(which);
    char text[400];
    buffer_poison(out);
    side->team.watched = true;
    send_start(v, "verifying", name, v->call_ns);
    const double start = team_now_ns();
    team_case_call(&side->team, 0);
    const double took = team_now_ns() - start;
    side->team.watched = false;
    v->call_ns = fmax(v->call_ns, took);
    abi_guard_check_heap();
    if (side->team.stray[0] != '\0') {
        snprintf(v->reason, sizeof(v->reason), "%s: %s", name, side->team.stray);
        return false;
    }
    if (side->team.ran != side->team.threads) {
        snprintf(v->reason, sizeof(v->reason), "%s: %d threads ran in place of %d", name,
                 side->team.ran, side->team.threads);
        return false;
    }
    if (!right(side, out, text, sizeof(text))) {
        snprintf(v->reason, sizeof(v->reason), "%s: %s", name, text);
        return false;
    }
    return true;
}

static void body(void *context, uint64_t iterations) {
    struct subject *side = context;
    struct scene *s = side->scene;
    for (uint64_t i = 0; i < iterations; i++) {
        team_case_call(&side->team, s->next_copy);
        s->next_copy = s->next_copy + 1 < s->copies ? s->next_copy + 1 : 0;
    }
}

static double run_stopwatch(void *context, uint64_t iterations) {
    const struct subject *side = context;
    return gbench_sample(side->kernel->name, body, context, iterations);
}

static bool shows_no_time(struct visit *v, const struct subject *side) {
    snprintf(v->reason, sizeof(v->reason), "%s: the clock shows no time",
             ab_side_text((enum ab_side)(side - v->sides)));
    return false;
}

/// Times one call of each side; the slower one counts.
static bool time_calls(struct visit *v) {
    v->call_ns = 0;
    for (size_t k = 0; k < AB_SIDES; k++) {
        struct calibration found;
        if (!calibrate(&found, run_stopwatch, &v->sides[k], AB_SAMPLE_S * 1e9)) {
            return shows_no_time(v, &v->sides[k]);
        }
        v->call_ns = fmax(v->call_ns, found.call_ns);
    }
    return true;
}

/// Takes all pairs of a row. After the last one both outputs are verified.
static bool take_pairs(struct visit *v, size_t pairs) {
    char text[400];
    for (size_t p = 0; p < pairs; p++) {
        const size_t first = next_random() % AB_SIDES;
        const size_t from = v->scene->next_copy;
        for (size_t k = 0; k < AB_SIDES; k++) {
            const size_t which = k == 0 ? first : 1 - first;
            struct subject *side = &v->sides[which];
            const bool last = p + 1 == pairs;
            v->scene->next_copy = from;  // both visit the same copies
            const size_t end = (from + v->iterations - 1) % v->scene->copies;
            if (last) {
                buffer_poison(scene_output(v->scene, end));
            }
            const double ns = gbench_sample(side->kernel->name, body, side, v->iterations);
            if (!(ns > 0)) {
                return shows_no_time(v, side);
            }
            side->ns[side->pairs++] = ns;
            const bool kept = abi_guard_control_kept(text, sizeof(text));
            if (!kept || (last && !right(side, scene_output(v->scene, end), text, sizeof(text)))) {
                snprintf(v->reason, sizeof(v->reason), "%s: while it was timed: %s",
                         ab_side_text((enum ab_side)which), text);
                return false;
            }
        }
    }
    return true;
}

static void send_pairs(const struct visit *v) {
    json_t *ns[AB_SIDES], *hashes = json_array();
    for (size_t k = 0; k < AB_SIDES; k++) {
        char text[20];
        ns[k] = json_array();
        for (size_t i = 0; i < v->sides[k].pairs; i++) {
            json_array_append_new(ns[k], protocol_real(v->sides[k].ns[i]));
        }
        snprintf(text, sizeof(text), "%016llx", (unsigned long long)v->sides[k].hash);
        json_array_append_new(hashes, json_string(text));
    }
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "event", "pairs",
                                             "row", v->id, "base", ns[AB_BASE], "new", ns[AB_NEW],
                                             "call_ns", protocol_real(v->call_ns), "hash", hashes));
}

/// Finds both kernels; tells the parent when one of them does not take the shape.
static bool find_kernels(struct visit *v, const char *name) {
    bool lacking[AB_SIDES] = {false, false};
    snprintf(v->reason, sizeof(v->reason), "the kernel does not take this shape");
    for (size_t k = 0; k < AB_SIDES; k++) {
        const struct loaded_kernel *loaded = library_find(&libraries[k], name);
        char why[400] = "it is not there";
        v->sides[k].kernel = loaded ? loaded->kernel : NULL;
        v->sides[k].scene = v->scene;
        lacking[k] =
            !loaded || !pipeline_supports(loaded->kernel, &v->scene->problem, why, sizeof(why));
        if (lacking[k]) {
            snprintf(v->reason, sizeof(v->reason), "%s: %s", ab_side_text((enum ab_side)k), why);
        }
    }
    if (lacking[AB_BASE] || lacking[AB_NEW]) {
        protocol_send(
            WORKER_EVENT_FD,
            json_pack("{s:s, s:I, s:b, s:b, s:s}", "event", "unsupported", "row", v->id, "base",
                      lacking[AB_BASE], "new", lacking[AB_NEW], "reason", v->reason));
        return false;
    }
    return true;
}

/// Binds both sides, in random order, and learns what a call takes.
static bool bind(struct visit *v, double end_ns) {
    const size_t first = next_random() % AB_SIDES;
    char text[400];
    for (size_t i = 0; i < AB_SIDES; i++) {
        const size_t k = i == 0 ? first : 1 - first;
        const char *name = ab_side_text((enum ab_side)k);
        struct subject *side = &v->sides[k];
        send_start(v, "preparing", name, 0);
        if (!team_case_make(&side->team, v->scene->driver, side->kernel, &v->scene->problem,
                            v->threads, v->scene->copies, v->scene->copy_tensors, 0, false, text,
                            sizeof(text))) {
            snprintf(v->reason, sizeof(v->reason), "%s: %s", name, text);
            send_reason(v, "bad");
            return false;
        }
        // A slow row that was verified in an earlier launch is timed without a call before.
        side->team.watched = true;
        team_case_prepare(&side->team);
        side->team.watched = false;
        if (side->team.stray[0] != '\0') {
            snprintf(v->reason, sizeof(v->reason), "%s: %s", name, side->team.stray);
            send_reason(v, "bad");
            return false;
        }
        if (!(v->call_ns > 0)) {
            side->team.watched = true;
            send_start(v, "running one item of", name, 0);
            const double estimate = team_case_probe_ns(&side->team);
            side->team.watched = false;
            // Both sides are called twice at least, once to verify and once to measure.
            if (4 * estimate > end_ns - team_now_ns()) {
                snprintf(v->reason, sizeof(v->reason),
                         "one call takes about %.3g s, more than the budget leaves",
                         estimate / 1e9);
                send_reason(v, "slow");
                return false;
            }
        }
    }
    return true;
}

static void settle(int threads) {
    static int previous = 1;
    if (previous > 1 && threads != previous) {
        usleep(SLEEP_AFTER_TEAM_US);
    }
    previous = threads;
}

static void measure(struct visit *v, const json_t *json) {
    const size_t pairs =
        (size_t)fmin(fmax(1, (double)protocol_get_integer(json, "pairs")), (double)AB_PAIRS_MAX);
    const double sample_ns = AB_SAMPLE_S * 1e9;
    const bool fresh = !(v->call_ns > 0);
    const size_t first = next_random() % AB_SIDES;
    for (size_t i = 0; i < AB_SIDES; i++) {
        const size_t k = i == 0 ? first : 1 - first;
        // A slow kernel that was verified before is held against that by its samples alone.
        if ((fresh || !v->sides[k].known || v->call_ns < sample_ns) &&
            !verify(v, (enum ab_side)k)) {
            send_reason(v, "bad");
            return;
        }
    }
    settle(v->threads);
    if (fresh) {
        send_start(v, "calibrating", "", 4 * v->call_ns);
        if (v->call_ns < 2 * sample_ns && !time_calls(v)) {
            send_reason(v, "bad");
            return;
        }
    } else {
        v->call_ns = protocol_get_real(json, "call_ns");
    }
    v->iterations = (uint64_t)fmax(1, ceil(sample_ns / v->call_ns));
    send_start(v, "timing", "", 2 * (double)pairs * v->call_ns * (double)(v->iterations + 1));
    if (take_pairs(v, pairs)) {
        send_pairs(v);
    } else {
        send_reason(v, "bad");
    }
}

static void visit_row(struct scene *s, const json_t *json, double end_ns) {
    struct visit *v = diag_alloc(calloc(1, sizeof(*v)));
    v->scene = s;
    v->id = protocol_get_integer(json, "id");
    v->threads = (int)protocol_get_integer(json, "threads");
    v->call_ns = protocol_get_real(json, "call_ns");
    const json_t *hashes = json_object_get(json, "hash");
    for (size_t k = 0; k < AB_SIDES; k++) {
        const char *text = json_string_value(json_array_get(hashes, k));
        v->sides[k].known = text && text[0] != '\0';
        v->sides[k].hash = v->sides[k].known ? strtoull(text, NULL, 16) : 0;
    }
    if (find_kernels(v, protocol_get_string(json, "kernel"))) {
        if (bind(v, end_ns)) {
            measure(v, json);
        }
        for (size_t k = 0; k < AB_SIDES; k++) {
            if (v->sides[k].team.kernel) {
                team_case_free(&v->sides[k].team);
            }
        }
    }
    free(v);
}

static void visit_problem(const struct worker *worker, const json_t *json, double end_ns) {
    const json_t *rows = json_object_get(json, "rows");
    const size_t count = json_array_size(rows);
    struct scene s = {.worker = worker};
    if (!protocol_problem_from_json(json_object_get(json, "problem"), &s.problem)) {
        return;
    }
    s.driver = op_find(s.problem.op);
    const bool made = scene_make(&s);
    size_t *order = shuffled(count);
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, order[i]);
        if (!made) {
            struct visit v = {.id = protocol_get_integer(row, "id"),
                              .reason = "no memory for the problem's tensors"};
            send_reason(&v, "slow");
        } else if (team_now_ns() < end_ns) {
            visit_row(&s, row, end_ns);
        }
    }
    free(order);
    scene_free(&s);
}

void worker_ab(struct worker *worker) {
    const json_t *problems = json_object_get(worker->job, "problems");
    const size_t count = json_array_size(problems);
    if (!problems) {
        for (size_t k = 0; k < AB_SIDES; k++) {
            worker_send_kernels(&libraries[k], (int)k);
        }
        return;
    }
    char name[] = "mhabench";
    char *argv[] = {name, NULL};
    gbench_init(1, argv);
    const double end = team_now_ns() + protocol_get_real(worker->job, "seconds") * 1e9;
    size_t *order = shuffled(count);
    for (size_t i = 0; i < count; i++) {
        visit_problem(worker, json_array_get(problems, order[i]), end);
    }
    free(order);
}
