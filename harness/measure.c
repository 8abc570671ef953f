/// The worker's side of a launch: verdicts, samples and ceilings of the problems it is given, in
/// random order.
///
/// Job:    "launch", "min_time_s", "seconds" (for all of it; 0: no limit), "last_level_bytes",
///         "level_bytes": [L1, L2, L3], "emulated", "benchmark_args": [...],
///         "problems": [{"id", "problem", "cases": [{"id", "kernel", "threads", "samples",
///         "hash"}]}] A case with a hash was verified in an earlier launch: its output must have
///         these bits.
/// Events: {"event": "start", "case", "what", "expected_s"} before anything that may crash or hang;
///         {"event": "verdict", "case", "verdict", "reason", "max_ulp", ..., "hash"};
///         {"event": "samples", "case", "ns": [...], "iterations", "disturbed", "ghz", "pack_ns",
///          "create_ns"};
///         {"event": "ceiling", "problem", "kind", "isa", "mix", "level", "bytes", "threads",
///          "values": [...]};
///         {"event": "problem", "problem"} when a problem is complete.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi_guard.h"
#include "buffers.h"
#include "calibrate.h"
#include "canary.h"
#include "catalogue.h"
#include "data.h"
#include "diag.h"
#include "gbench_shim.h"
#include "ops/stream.h"
#include "oracle.h"
#include "pipeline.h"
#include "protocol.h"
#include "stats.h"
#include "team.h"
#include "worker.h"

/// Tries at a sample that the canary calls disturbed, before it is kept and counted as such.
enum { SAMPLE_TRIES = 4 };

/// Ceilings are sampled once a round up to this number in a launch.
enum { CEILING_SAMPLES = 3 };

/// Most live ceilings that one case brings: the case itself, FMA peaks and ways to move data.
enum { CEILINGS_PER_CASE = 8 };

/// Time that the threads of an ended team are given to stop spinning (see GOMP_SPINCOUNT).
enum { SLEEP_AFTER_TEAM_US = 1500 };

/// A kernel bound to buffers, ready to be sampled: a case of the job, or a ceiling.
struct live {
    json_int_t id;  ///< Case of the job, or -1 for a ceiling.
    const struct mha_kernel *kernel;
    struct team_case team;
    size_t wanted;  ///< Samples still to be taken in this launch.
    size_t taken;
    double *ns;
    uint64_t iterations;
    size_t disturbed;
    size_t next_copy;  ///< Cold: where the next iteration goes.
    struct canary_history history;
    const struct mha_kernel *peak;  ///< For the canary.
    double call_ns;                 ///< Estimate of one call.
    double cold_ns;                 ///< What one call may take longer when others had the caches.
    uint64_t hash;                  ///< Of the verified output.
    bool dead;                      ///< Failed after timing; no samples are reported.
    // ceilings
    double work;  ///< flops or bytes of one call.
    const char *kind, *mix;
};

struct problem_run {
    const struct worker *worker;
    json_int_t id;
    struct problem problem;
    const struct op_driver *driver;
    struct tensor_shape shapes[OP_TENSORS_MAX];
    size_t tensor_count;
    size_t copies;
    struct buffer *buffers;              ///< [copies][tensor_count]
    struct tensor *tensors;              ///< [copies][tensor_count]
    const struct tensor **copy_tensors;  ///< [copies]
    struct oracle oracle;
    bool has_oracle;
    double bytes;          ///< Working set of one copy.
    double deadline_ns;    ///< Of this problem; INFINITY: none.
    double launch_ns;      ///< Time for the whole launch; INFINITY: no limit.
    double launch_end_ns;  ///< When it is over.
    struct live *live;
    size_t live_count;
};

static uint64_t random_state;

static uint64_t next_random(void) {
    static uint64_t counter = 0;
    return data_mix(random_state, counter++);
}

static void shuffle(size_t *items, size_t count) {
    for (size_t i = count; i > 1; i--) {
        const size_t j = next_random() % i;
        const size_t kept = items[i - 1];
        items[i - 1] = items[j];
        items[j] = kept;
    }
}

static size_t *shuffled(size_t count) {
    size_t *order = diag_alloc(calloc(count + 1, sizeof(*order)));
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    shuffle(order, count);
    return order;
}

static void send_start(json_int_t id, const char *what, double expected_ns) {
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s, s:o}", "event", "start", "case", id, "what", what,
                            "expected_s", protocol_real(expected_ns / 1e9)));
}

static void send_verdict(json_int_t id, enum verdict verdict, const char *reason,
                         const struct judgement *j, double checked_share, uint64_t hash) {
    char text[20];
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s, s:s, s:o, s:o, s:o, s:s}", "event", "verdict", "case",
                            id, "verdict", verdict_text(verdict), "reason", reason, "max_ulp",
                            protocol_real(j ? j->max_ulp : UNKNOWN), "bound_share",
                            protocol_real(j ? j->bound_share : UNKNOWN), "checked_share",
                            protocol_real(checked_share), "hash", text));
}

// --- sampling
// -----------------------------------------------------------------------------------------

static void sample_body(void *context, uint64_t iterations) {
    struct live *l = context;
    for (uint64_t i = 0; i < iterations; i++) {
        team_case_call(&l->team, l->next_copy);
        l->next_copy = l->next_copy + 1 < l->team.copies ? l->next_copy + 1 : 0;
    }
}

static double run_stopwatch(void *context, uint64_t iterations) {
    const struct live *l = context;
    return gbench_sample(l->kernel->name, sample_body, context, iterations);
}

/// Finds the iterations of one sample; false when it cannot be timed.
static bool find_iterations(struct live *l, double min_time_ns) {
    if (l->call_ns > 2 * min_time_ns) {
        l->iterations = 1;  // one call is long enough, and dear
        return true;
    }
    struct calibration found;
    if (!calibrate(&found, run_stopwatch, l, min_time_ns)) {
        return false;
    }
    l->iterations = found.iterations;
    l->call_ns = found.call_ns;
    return true;
}

static void settle(int threads) {
    static int previous = 1;
    if (previous > 1 && threads != previous) {
        usleep(SLEEP_AFTER_TEAM_US);
    }
    previous = threads;
}

/// Part of a sample that may go to fetching what others have driven out of the caches meanwhile.
#define COLD_SHARE 0.01

/// Tells whether a call of its own must come before a sample: hot is hot from the first iteration
/// on. Where one call is the sample, that doubles its price, and one that computes for long goes
/// without.
static bool needs_warming(const struct live *l) {
    return l->team.copies == 1 && (l->iterations > 1 || l->cold_ns > COLD_SHARE * l->call_ns);
}

static void take_sample(struct live *l) {
    const int threads = l->team.threads;
    double ns = 0;
    bool disturbed = true;
    for (int attempt = 0; attempt < SAMPLE_TRIES && disturbed; attempt++) {
        settle(threads);
        if (needs_warming(l)) {
            sample_body(l, 1);
        }
        const struct canary before = canary_look(threads, l->peak);
        ns = gbench_sample(l->kernel->name, sample_body, l, l->iterations);
        const struct canary after = canary_look(threads, l->peak);
        disturbed = canary_disturbed(&l->history, before, after);
    }
    l->ns = diag_alloc(realloc(l->ns, (l->taken + 1) * sizeof(*l->ns)));
    l->ns[l->taken++] = ns;
    l->disturbed += disturbed;
}

// --- buffers
// ------------------------------------------------------------------------------------------

struct fill_job {
    const struct op_driver *driver;
    const struct problem *problem;
    const struct data_class *data;
    uint64_t seed;
    size_t index;
    const struct tensor *tensor;
};

static void fill_row(void *context, size_t i, int thread) {
    const struct fill_job *job = context;
    (void)thread;
    op_fill_rows(job->driver, job->problem, job->data, job->seed, 0, job->index, job->tensor,
                 i / job->tensor->shape.rows, i % job->tensor->shape.rows, 1);
}

/// Half a page off the input's place: a copy whose stores have the same low 12 address bits as
/// loads just behind them is slowed down by false dependences, and a ceiling must not be.
static const struct layout layout_apart = {PLACE_FRONT, 2048, 0, 0};

/// Maps and fills `copies` sets of the tensors of any op.
static bool make_tensors(const struct worker *worker, const struct op_driver *driver,
                         const struct problem *problem, size_t copies, struct buffer **buffers,
                         struct tensor **tensors, const struct tensor ***copy_tensors) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    const size_t count = driver->tensors(problem, shapes);
    *buffers = diag_alloc(calloc(copies * count, sizeof(**buffers)));
    *tensors = diag_alloc(calloc(copies * count, sizeof(**tensors)));
    // NOLINTNEXTLINE(bugprone-sizeof-expression): pointers are what is kept
    *copy_tensors = diag_alloc(calloc(copies, sizeof(**copy_tensors)));
    const struct data_class *data = data_class_of(driver, problem);
    for (size_t i = 0; i < copies * count; i++) {
        const struct layout *layout = &layout_dense;
        if (driver->ceiling && shapes[i % count].role == TENSOR_OUTPUT) {
            layout = &layout_apart;
        }
        if (!buffer_make(&(*buffers)[i], &shapes[i % count], layout)) {
            return false;
        }
        struct tensor *t = &(*tensors)[i];
        *t = (*buffers)[i].tensor;
        (*copy_tensors)[i / count] = *tensors + i / count * count;
        if (t->shape.role == TENSOR_INPUT) {
            struct fill_job job = {driver, problem, data, worker->seed, i % count, t};
            team_for(worker->threads_allowed, t->shape.planes * t->shape.rows, fill_row, &job);
            buffer_protect(&(*buffers)[i], true);  // a kernel that writes to its input faults
        } else {
            buffer_poison(&(*buffers)[i]);
        }
    }
    return true;
}

static void free_tensors(size_t count, struct buffer *buffers, struct tensor *tensors,
                         const struct tensor **copy_tensors) {
    for (size_t i = 0; buffers && i < count; i++) {
        buffer_free(&buffers[i]);
    }
    free(buffers);
    free(tensors);
    free(copy_tensors);
}

static double available_bytes(void) {
    return (double)sysconf(_SC_AVPHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
}

static double last_level_bytes(const struct worker *worker) {
    return protocol_get_real(worker->job, "last_level_bytes");
}

/// A core's rate from memory, in bytes per ns.
#define MEMORY_BYTES_PER_NS 10.0

/// Gets what one call may take longer when others had the caches; 0 where it is more than they
/// hold.
static double cold_ns(const struct worker *worker, const struct op_driver *driver,
                      const struct problem *problem) {
    double read, written;
    driver->bytes(problem, &read, &written);
    const double bytes = read + written;
    return bytes <= last_level_bytes(worker) ? bytes / MEMORY_BYTES_PER_NS : 0;
}

/// The smallest level of the memory hierarchy that holds `bytes` when `threads` share them out.
static const char *level_of(const struct worker *worker, double bytes, int threads) {
    static const char *const names[] = {"L1", "L2", "L3"};
    const json_t *levels = json_object_get(worker->job, "level_bytes");
    for (size_t i = 0; i < 3; i++) {
        const double size = json_number_value(json_array_get(levels, i));
        // The first two belong to a core, the third to all of them.
        if (bytes <= size * (i < 2 ? threads : 1)) {
            return names[i];
        }
    }
    return "DRAM";
}

// --- one problem
// --------------------------------------------------------------------------------------

static struct buffer *output_buffer(const struct problem_run *p, size_t copy) {
    return &p->buffers[copy * p->tensor_count + p->tensor_count - 1];
}

static bool judge(struct problem_run *p, const struct buffer *out, struct judgement *j) {
    if (!p->has_oracle) {
        p->has_oracle = oracle_make(&p->oracle, p->driver, &p->problem, p->copy_tensors[0],
                                    data_class_of(p->driver, &p->problem), p->worker->seed,
                                    p->worker->threads_allowed);
    }
    if (p->has_oracle) {
        oracle_judge(&p->oracle, &out->tensor, p->worker->threads_allowed, j);
    }
    return p->has_oracle;
}

static const struct mha_kernel *peak_kernel(const struct worker *worker, const char *isa) {
    for (size_t i = 0; i < worker->table.count; i++) {
        const struct mha_kernel *k = worker->table.kernels[i].kernel;
        if (strcmp(k->op, "peak") == 0 && strcmp(k->isa, isa) == 0) {
            return k;
        }
    }
    return NULL;
}

/// Tells whether a ceiling kernel is live at this thread count.
static bool is_live(const struct problem_run *p, const struct mha_kernel *kernel, int threads) {
    bool found = false;
    for (size_t i = 0; i < p->live_count; i++) {
        found = found || (p->live[i].id < 0 && p->live[i].kernel == kernel &&
                          p->live[i].team.threads == threads);
    }
    return found;
}

/// Tells whether a call that takes longer than a sample fits into the launch. The first time it is
/// called twice, to verify and to measure: that may take a tenth of the launch, and launches may
/// overrun by a half, so that a row is left out for what it costs and not for coming late; what
/// takes less than a five-hundredth never is. Later launches end in time.
static bool affordable(const struct problem_run *p, double estimate_ns, bool verified) {
    const double left_ns = p->launch_end_ns - team_now_ns();
    const double cost_ns = 2 * estimate_ns;
    if (verified) {
        return left_ns > 0 && cost_ns <= 0.1 * p->launch_ns;
    }
    return cost_ns <= p->launch_ns / 500 ||
           (cost_ns <= 0.1 * p->launch_ns && left_ns > -0.5 * p->launch_ns);
}

/// Brings one case of the job to life: supported, affordable, right. Sends its verdict when it is
/// not known from an earlier launch.
static void admit(struct problem_run *p, const json_t *json) {
    const json_int_t id = protocol_get_integer(json, "id");
    const char *name = protocol_get_string(json, "kernel");
    const char *known = protocol_get_string(json, "hash");
    const struct loaded_kernel *loaded = library_find(&p->worker->table, name);
    if (!loaded) {
        send_verdict(id, VERDICT_UNTESTED, "the kernel is gone", NULL, UNKNOWN, 0);
        return;
    }
    char text[512];
    if (!pipeline_supports(loaded->kernel, &p->problem, text, sizeof(text))) {
        send_verdict(id, VERDICT_UNSUPPORTED, text, NULL, UNKNOWN, 0);
        return;
    }
    struct live *l = &p->live[p->live_count];
    memset(l, 0, sizeof(*l));
    l->id = id;
    l->kernel = loaded->kernel;
    l->wanted = (size_t)protocol_get_integer(json, "samples");
    l->cold_ns = cold_ns(p->worker, p->driver, &p->problem);
    l->peak = peak_kernel(p->worker, l->kernel->isa);
    send_start(id, "preparing", 0);
    if (!team_case_make(&l->team, p->driver, l->kernel, &p->problem,
                        (int)protocol_get_integer(json, "threads"), p->copies, p->copy_tensors, 0,
                        false, text, sizeof(text))) {
        send_verdict(id, VERDICT_UNSUPPORTED, text, NULL, UNKNOWN, 0);
        return;
    }
    l->team.watched = true;  // until it is verified
    send_start(id, "running one item", 0);
    const double estimate_ns = team_case_probe_ns(&l->team);
    const double min_time_ns = protocol_get_real(p->worker->job, "min_time_s") * 1e9;
    if (estimate_ns > min_time_ns && !affordable(p, estimate_ns, known[0] != '\0')) {
        // A row that was verified before is not judged again: it goes without samples of this
        // launch.
        if (known[0] == '\0') {
            snprintf(text, sizeof(text), "one call takes about %.3g s, more than the budget leaves",
                     estimate_ns / 1e9);
            send_verdict(id, VERDICT_SKIPPED, text, NULL, UNKNOWN, 0);
        }
        team_case_free(&l->team);
        return;
    }
    l->call_ns = estimate_ns;
    if (known[0] != '\0' && estimate_ns > min_time_ns) {
        // Slow, and verified in an earlier launch: the sample's own output is held against that.
        l->hash = strtoull(known, NULL, 16);
        l->team.watched = false;
        p->live_count++;
        return;
    }
    struct buffer *out = output_buffer(p, 0);
    buffer_poison(out);
    send_start(id, "verifying", estimate_ns);
    abi_guard_open_heap();
    const double start = team_now_ns();
    team_case_call(&l->team, 0);
    l->call_ns = team_now_ns() - start;
    l->hash = buffer_hash(out);
    l->team.watched = false;
    abi_guard_check_heap();
    const bool same = known[0] != '\0' && strtoull(known, NULL, 16) == l->hash;
    if (!same || l->team.stray[0] != '\0') {
        struct judgement j = {0};
        if (!judge(p, out, &j)) {
            send_verdict(id, VERDICT_SKIPPED, "no memory for the oracle", NULL, UNKNOWN, 0);
            team_case_free(&l->team);
            return;
        }
        if (l->team.ran != l->team.threads) {
            j.verdict = VERDICT_FAILED;
            snprintf(j.reason, sizeof(j.reason), "%d threads ran in place of %d", l->team.ran,
                     l->team.threads);
        } else if (l->team.stray[0] != '\0') {
            j.verdict = VERDICT_FAILED;
            snprintf(j.reason, sizeof(j.reason), "%s", l->team.stray);
        } else if (j.verdict == VERDICT_PASSED && !buffer_intact(out, text, sizeof(text))) {
            j.verdict = VERDICT_FAILED;
            snprintf(j.reason, sizeof(j.reason), "%.300s", text);
        } else if (j.verdict == VERDICT_PASSED && known[0] != '\0' &&
                   !(l->kernel->flags & MHA_FLAG_NONDETERMINISTIC)) {
            j.verdict = VERDICT_FAILED;
            snprintf(j.reason, sizeof(j.reason),
                     "the output has other bits than in an earlier launch, on the same input");
        }
        send_verdict(id, j.verdict, j.reason, &j, p->oracle.checked_share, l->hash);
        if (j.verdict != VERDICT_PASSED) {
            team_case_free(&l->team);
            return;
        }
    }
    p->live_count++;
}

/// Looks at what a kernel did beside its result in calls that were not watched. Such damage would
/// be the next kernel's in the eyes of whoever looks later.
static bool kept_order(struct live *l, const struct buffer *out) {
    char text[200], reason[240];
    abi_guard_check_heap();
    const bool kept = abi_guard_control_kept(text, sizeof(text));
    if (l->id < 0 || (kept && buffer_intact(out, text, sizeof(text)))) {
        return true;  // ceilings have other buffers, and are judged by nobody
    }
    l->dead = true;
    snprintf(reason, sizeof(reason), "while it was timed: %s", text);
    send_verdict(l->id, VERDICT_FAILED, reason, NULL, UNKNOWN, l->hash);
    return false;
}

/// Holds the output that a sample left against the verified one.
static void verify_after(struct problem_run *p, struct live *l) {
    const size_t last = (l->next_copy + l->team.copies - 1) % l->team.copies;
    const struct buffer *out = output_buffer(p, last);
    if (!kept_order(l, out) || buffer_hash(out) == l->hash) {
        return;
    }
    struct judgement j = {0};
    const bool judged = judge(p, out, &j);
    if ((l->kernel->flags & MHA_FLAG_NONDETERMINISTIC) && judged && j.verdict == VERDICT_PASSED) {
        return;
    }
    l->dead = true;
    if (j.verdict != VERDICT_FAILED) {
        snprintf(j.reason, sizeof(j.reason),
                 "after timing the output has other bits than the verified one");
    }
    send_verdict(l->id, VERDICT_FAILED, j.reason, &j, p->oracle.checked_share, l->hash);
}

// --- ceilings
// -----------------------------------------------------------------------------------------

/// A ceiling op's problem with its own buffers.
struct stream {
    const struct op_driver *driver;
    struct problem problem;
    struct buffer *buffers;
    struct tensor *tensors;
    const struct tensor **copy_tensors;
    size_t tensor_count;
    bool good;
};

/// Items that each thread has of a peak in one call: some 4 milliseconds together, what a scheduler
/// gives to others at a time. The threads' start does not show then, nor the end, when some have
/// nothing left to do.
enum { PEAK_ITEMS = 100 };

/// Above this a ceiling's buffers need not follow the problem's size: it is all DRAM.
#define STREAM_BYTES_MAX ((double)(512u << 20))

static bool stream_make(struct stream *s, const struct worker *worker, const char *op,
                        const char *dtype, double bytes, int threads) {
    memset(s, 0, sizeof(*s));
    s->driver = op_find(op);
    struct stream_planes cut = {(size_t)threads * PEAK_ITEMS, 1};
    if (strcmp(op, "peak") != 0) {
        const double streams = strcmp(op, "copy") == 0 ? 2 : 1;
        cut = stream_planes_of(fmin(bytes, STREAM_BYTES_MAX) / (4 * streams), (size_t)threads);
    }
    s->problem = (struct problem){.op = s->driver->name,
                                  .dtype = dtype,
                                  .shape = {cut.planes, 1, 1, 1, cut.count, 1},
                                  .mask = MHA_MASK_NONE,
                                  .cache = CACHE_HOT};
    s->driver->normalise(&s->problem);
    struct tensor_shape shapes[OP_TENSORS_MAX];
    s->tensor_count = s->driver->tensors(&s->problem, shapes);
    s->good =
        make_tensors(worker, s->driver, &s->problem, 1, &s->buffers, &s->tensors, &s->copy_tensors);
    return s->good;
}

static void stream_free(struct stream *s) {
    free_tensors(s->tensor_count, s->buffers, s->tensors, s->copy_tensors);
    memset(s, 0, sizeof(*s));
}

/// Binds a ceiling kernel to its stream, checks it, and makes it live.
static void admit_ceiling(struct problem_run *p, struct stream *s, const struct mha_kernel *kernel,
                          int threads) {
    struct live *l = &p->live[p->live_count];
    memset(l, 0, sizeof(*l));
    l->id = -1;
    l->kernel = kernel;
    l->wanted = CEILING_SAMPLES;
    l->peak = peak_kernel(p->worker, kernel->isa);
    char text[512];
    if (!s->good || !team_case_make(&l->team, s->driver, kernel, &s->problem, threads, 1,
                                    s->copy_tensors, 0, false, text, sizeof(text))) {
        return;
    }
    struct buffer *out = &s->buffers[s->tensor_count - 1];
    buffer_poison(out);
    team_case_call(&l->team, 0);
    struct oracle oracle;
    struct judgement j = {0};
    if (oracle_make(&oracle, s->driver, &s->problem, s->tensors,
                    data_class_of(s->driver, &s->problem), p->worker->seed,
                    p->worker->threads_allowed)) {
        oracle_judge(&oracle, &out->tensor, p->worker->threads_allowed, &j);
        oracle_free(&oracle);
    }
    if (j.verdict != VERDICT_PASSED) {
        diag_note("the ceiling %s is not used: %s", kernel->name, j.reason);
        team_case_free(&l->team);
        return;
    }
    if (strcmp(kernel->op, "peak") == 0) {
        l->kind = "fma";
        l->mix = "";
        l->work = s->driver->flops(&s->problem) * kernel->flops_per_step;
    } else {
        double read, written;
        s->driver->bytes(&s->problem, &read, &written);
        l->kind = "bandwidth";
        // A streaming variant is a mix of its own: its stores go past the caches.
        const bool streaming = strncmp(kernel->tag, "nt", 2) == 0;
        l->mix = !streaming                        ? kernel->op
                 : strcmp(kernel->op, "copy") == 0 ? "streaming copy"
                                                   : "streaming write";
        l->work = read + written;
        l->cold_ns = cold_ns(p->worker, s->driver, &s->problem);
    }
    p->live_count++;
}

static void send_ceiling(const struct problem_run *p, const struct live *l, double bytes) {
    json_t *values = json_array();
    for (size_t i = 0; i < l->taken; i++) {
        json_array_append_new(values, protocol_real(l->work / l->ns[i]));
    }
    const bool fma = strcmp(l->kind, "fma") == 0;
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:i, s:o}", "event",
                            "ceiling", "problem", p->id, "kernel", l->kernel->name, "kind", l->kind,
                            "isa", l->kernel->isa, "mix", l->mix, "level",
                            fma ? "" : level_of(p->worker, bytes, l->team.threads), "dtype",
                            l->kernel->dtype, "bytes", protocol_real(fma ? 0 : bytes), "threads",
                            l->team.threads, "values", values));
}

// --- the problem's schedule
// ---------------------------------------------------------------------------

/// Draws samples until every live case has what it wants or the time is up; each gets at least one.
static void draw_samples(struct problem_run *p) {
    for (bool more = true; more;) {
        more = false;
        size_t *order = shuffled(p->live_count);
        for (size_t i = 0; i < p->live_count; i++) {
            struct live *l = &p->live[order[i]];
            const bool late = team_now_ns() > p->deadline_ns;
            if (l->dead || l->taken >= l->wanted || (l->taken > 0 && late)) {
                continue;
            }
            if (l->id >= 0) {
                send_start(l->id, "timing", l->call_ns * (double)(l->iterations + 1));
            }
            take_sample(l);
            if (l->id >= 0) {
                verify_after(p, l);
            }
            more = more || l->taken < l->wanted;
        }
        free(order);
        more = more && team_now_ns() <= p->deadline_ns;
    }
}

/// Calls that tell the times of a pipeline's steps: no more than a sample's time allows, but for
/// the first few.
enum { STEP_CALLS_MIN = 3, STEP_CALLS_MAX = 25 };

/// Times a pipeline's steps in calls of their own: the shortest time of each, since a call of many
/// steps is seldom undisturbed in all of them.
static json_t *time_steps(struct live *l, double min_time_ns) {
    double least[OP_STEPS_MAX], one[OP_STEPS_MAX];
    const size_t steps = l->team.steps;
    const double start = team_now_ns();
    settle(l->team.threads);
    for (size_t calls = 0;
         calls < STEP_CALLS_MIN || (calls < STEP_CALLS_MAX && team_now_ns() - start < min_time_ns);
         calls++) {
        team_case_call_steps(&l->team, 0, one);
        for (size_t i = 0; i < steps; i++) {
            least[i] = calls > 0 ? fmin(least[i], one[i]) : one[i];
        }
    }
    json_t *array = json_array();
    for (size_t i = 0; i < steps; i++) {
        const struct mha_kernel *kernel = l->team.step[i].team.kernel;
        json_array_append_new(array, json_pack("{s:s, s:s, s:o}", "op", kernel->op, "kernel",
                                               kernel->name, "ns", protocol_real(least[i])));
    }
    return array;
}

static void send_samples(struct live *l, double min_time_ns) {
    json_t *ns = json_array();
    for (size_t i = 0; i < l->taken; i++) {
        json_array_append_new(ns, protocol_real(l->ns[i]));
    }
    double pack_ns = UNKNOWN;
    if (l->team.packs) {
        // Packing alone, the median of a few calls: a part of what the samples hold.
        double times[5];
        for (size_t i = 0; i < 5; i++) {
            const double start = team_now_ns();
            team_case_pack(&l->team, 0);
            times[i] = team_now_ns() - start;
        }
        pack_ns = stats_median(times, 5);
    }
    json_t *steps = l->team.steps > 0 ? time_steps(l, min_time_ns) : json_null();
    protocol_send(
        WORKER_EVENT_FD,
        json_pack("{s:s, s:I, s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "event", "samples", "case",
                  l->id, "ns", ns, "iterations", (json_int_t)l->iterations, "disturbed",
                  (json_int_t)l->disturbed, "ghz", protocol_real(canary_ghz(&l->history)),
                  "pack_ns", protocol_real(pack_ns), "create_ns",
                  protocol_real(l->team.create_ns > 0 ? l->team.create_ns : UNKNOWN), "steps",
                  steps));
}

static void skip_all(const json_t *cases, const char *reason) {
    for (size_t i = 0; i < json_array_size(cases); i++) {
        send_verdict(protocol_get_integer(json_array_get(cases, i), "id"), VERDICT_SKIPPED, reason,
                     NULL, UNKNOWN, 0);
    }
}

/// Adds the ceilings that this problem's live cases are held against: the FMA peaks of every ISA,
/// and the bandwidth at the problem's own working set, by the widest ISA at hand; per thread count.
static size_t add_ceilings(struct problem_run *p, struct stream *streams, double stream_bytes) {
    size_t used = 0;
    const size_t cases = p->live_count;
    const struct kernel_table *table = &p->worker->table;
    const bool fma = p->driver->flops(&p->problem) > 0 && !p->driver->ceiling;
    for (size_t i = 0; i < cases; i++) {
        const int threads = p->live[i].team.threads;
        bool new_threads = true, new_isa = true;
        for (size_t k = 0; k < i; k++) {
            const bool same = p->live[k].team.threads == threads;
            new_threads = new_threads && !same;
            new_isa =
                new_isa && !(same && strcmp(p->live[k].kernel->isa, p->live[i].kernel->isa) == 0);
        }
        // What an ISA adds need not be the fastest that a CPU has for it: vdpbf16ps may multiply
        // and add less in a cycle than the FMAs that it comes on top of.
        for (size_t k = 0; fma && new_isa && k < table->count; k++) {
            const struct mha_kernel *peak = table->kernels[k].kernel;
            if (strcmp(peak->op, "peak") == 0 &&
                catalogue_isa_holds(p->live[i].kernel->isa, peak->isa) &&
                !is_live(p, peak, threads) && p->live_count < CEILINGS_PER_CASE * cases) {
                stream_make(&streams[used], p->worker, "peak", peak->dtype, 0, threads);
                admit_ceiling(p, &streams[used++], peak, threads);
            }
        }
        if (!new_threads || p->driver->ceiling) {
            continue;
        }
        struct stream *s = &streams[used++];
        stream_make(s, p->worker, p->driver->mix, element_word(ELEMENT_F32), stream_bytes, threads);
        // The widest ISA is the last in the list of what the library has and the CPU runs.
        const char *widest = NULL;
        for (size_t k = 0; k < table->count; k++) {
            const struct mha_kernel *kernel = table->kernels[k].kernel;
            const char *why_not;
            if (strcmp(kernel->op, p->driver->mix) == 0 &&
                catalogue_isa_runs(kernel->isa, NULL, &why_not)) {
                widest = kernel->isa;
            }
        }
        for (size_t k = 0; widest && k < table->count; k++) {
            const struct mha_kernel *kernel = table->kernels[k].kernel;
            if (strcmp(kernel->op, p->driver->mix) == 0 && strcmp(kernel->isa, widest) == 0 &&
                p->live_count < CEILINGS_PER_CASE * cases) {
                admit_ceiling(p, s, kernel, threads);
            }
        }
    }
    return used;
}

static void run_problem(const struct worker *worker, const json_t *json, double slice_ns,
                        double launch_ns, double launch_end_ns) {
    const json_t *cases = json_object_get(json, "cases");
    const size_t case_count = json_array_size(cases);
    const double min_time_ns = protocol_get_real(worker->job, "min_time_s") * 1e9;
    const double start = team_now_ns();
    struct problem_run p = {
        .worker = worker,
        .id = protocol_get_integer(json, "id"),
        .deadline_ns = slice_ns > 0 ? start + slice_ns : HUGE_VAL,
        .launch_ns = launch_ns,
        .launch_end_ns = launch_end_ns,
    };
    if (!protocol_problem_from_json(json_object_get(json, "problem"), &p.problem)) {
        return;
    }
    p.driver = op_find(p.problem.op);
    p.tensor_count = p.driver->tensors(&p.problem, p.shapes);
    double set_bytes = 0;
    for (size_t i = 0; i < p.tensor_count; i++) {
        set_bytes += tensor_bytes(&p.shapes[i]);
    }
    p.bytes = set_bytes;
    p.copies = 1;
    if (p.problem.cache == CACHE_COLD) {
        // Twice the last level, so that a copy is gone from it when its turn comes again.
        p.copies = (size_t)ceil(2 * last_level_bytes(worker) / fmax(set_bytes, 4096)) + 1;
    }
    // The oracle holds a double and a bound for every element it checks; half of what is free is
    // left alone.
    if (set_bytes * (double)p.copies > available_bytes() / 2) {
        char text[160];
        snprintf(text, sizeof(text), "needs %.3g GB of memory, %.3g GB are free",
                 set_bytes * (double)p.copies / 1e9, available_bytes() / 1e9);
        skip_all(cases, text);
        return;
    }
    if (!make_tensors(worker, p.driver, &p.problem, p.copies, &p.buffers, &p.tensors,
                      &p.copy_tensors)) {
        skip_all(cases, "no memory for the problem's tensors");
        free_tensors(p.copies * p.tensor_count, p.buffers, p.tensors, p.copy_tensors);
        return;
    }
    p.live = diag_alloc(calloc(CEILINGS_PER_CASE * case_count + 1, sizeof(*p.live)));
    struct stream *streams =
        diag_alloc(calloc(CEILINGS_PER_CASE * case_count + 1, sizeof(*streams)));
    size_t *order = shuffled(case_count);
    for (size_t i = 0; i < case_count; i++) {
        admit(&p, json_array_get(cases, order[i]));
    }
    free(order);
    size_t stream_count = 0;
    const bool timed = !json_is_true(json_object_get(worker->job, "emulated"));
    double stream_bytes = p.bytes;
    if (timed && p.live_count > 0) {
        if (p.problem.cache == CACHE_COLD) {
            stream_bytes = fmax(stream_bytes, 2 * last_level_bytes(worker));
        }
        stream_count = add_ceilings(&p, streams, stream_bytes);
        for (size_t i = 0; i < p.live_count; i++) {
            struct live *l = &p.live[i];
            if (l->id >= 0) {
                send_start(l->id, "calibrating", 10 * fmax(l->call_ns, min_time_ns));
            }
            // Ceilings' samples are as long as the others': what L3 gives depends on how often it
            // was asked before.
            settle(l->team.threads);
            if (!find_iterations(l, min_time_ns)) {
                l->dead = true;
                if (l->id >= 0) {
                    send_verdict(l->id, VERDICT_SKIPPED, "the stopwatch tells no time", NULL,
                                 UNKNOWN, 0);
                }
            } else {
                kept_order(l, output_buffer(&p, 0));
            }
        }
        draw_samples(&p);
    }
    for (size_t i = 0; i < p.live_count; i++) {
        struct live *l = &p.live[i];
        if (l->id < 0 && !l->dead) {
            send_ceiling(&p, l, stream_bytes);
        } else if (l->id >= 0 && timed && !l->dead) {
            send_samples(l, min_time_ns);
        }
        team_case_free(&l->team);
        canary_free(&l->history);
        free(l->ns);
    }
    for (size_t i = 0; i < stream_count; i++) {
        stream_free(&streams[i]);
    }
    free(streams);
    free(p.live);
    if (p.has_oracle) {
        oracle_free(&p.oracle);
    }
    free_tensors(p.copies * p.tensor_count, p.buffers, p.tensors, p.copy_tensors);
}

void worker_measure(struct worker *worker) {
    const json_t *args = json_object_get(worker->job, "benchmark_args");
    const size_t count = json_array_size(args);
    char **argv = diag_alloc(calloc(count + 2, sizeof(*argv)));
    argv[0] = diag_alloc(strdup("mhabench"));
    for (size_t i = 0; i < count; i++) {
        argv[i + 1] = diag_alloc(strdup(json_string_value(json_array_get(args, i))));
    }
    if (!gbench_init((int)count + 1, argv)) {
        protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:s}", "event", "error", "text",
                                                 "Google Benchmark refuses its options"));
        _exit(EXIT_USAGE);
    }
    random_state =
        data_mix(worker->seed, (uint64_t)protocol_get_integer(worker->job, "launch") + 1000);
    const json_t *problems = json_object_get(worker->job, "problems");
    const size_t problem_count = json_array_size(problems);
    const double seconds = protocol_get_real(worker->job, "seconds");
    const double launch_ns = seconds > 0 ? seconds * 1e9 : HUGE_VAL;
    const double end = team_now_ns() + launch_ns;
    size_t *order = shuffled(problem_count);
    for (size_t i = 0; i < problem_count; i++) {
        const json_t *problem = json_array_get(problems, order[i]);
        // What earlier problems did not use goes to the later ones.
        const double left = end - team_now_ns();
        const double slice = seconds > 0 ? fmax(left, 1) / (double)(problem_count - i) : 0;
        run_problem(worker, problem, slice, launch_ns, end);
        protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:I}", "event", "problem", "problem",
                                                 protocol_get_integer(problem, "id")));
    }
    free(order);
}
