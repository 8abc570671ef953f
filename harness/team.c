#include "team.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "abi_guard.h"
#include "diag.h"
#include "fault_report.h"
#include "pipeline.h"

double team_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

void team_for(int threads, size_t count, void (*fn)(void *context, size_t i, int thread),
              void *context) {
    if (threads <= 1) {
        for (size_t i = 0; i < count; i++) {
            fn(context, i, 0);
        }
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t i = 0; i < count; i++) {
        fn(context, i, omp_get_thread_num());
    }
}

int team_each(int threads, void (*fn)(void *context, int thread), void *context) {
    int ran = 1;
    if (threads <= 1) {
        fn(context, 0);
        return ran;
    }
#pragma omp parallel num_threads(threads)
    {
#pragma omp single
        ran = omp_get_num_threads();
        fn(context, omp_get_thread_num());
    }
    return ran;
}

static size_t round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

enum { PAGE = 4096, LINE = 64 };

/// What slots are filled with when guarded: a NaN as a float, a wild index as an integer.
enum { SLOT_BYTE = 0xff };

/// A guarded map that a finished case left behind. A check makes hundreds of thousands of cases and
/// few sizes of slots: mapping and unmapping each of them took a third of its time.
struct spare {
    unsigned char *map;
    size_t map_bytes;
    size_t stride_bytes;
};

/// As many as the kernels of a task have sizes; larger maps go back to the system at once.
enum { SPARES_MAX = 32, SPARE_BYTES_MAX = 1 << 20 };

/// Touched between runs, by one thread. `next_spare` is the one that makes room.
static struct spare spares[SPARES_MAX];
static size_t next_spare;

/// Takes a spare map whose guard pages are where these slots want them; NULL when there is none.
static void *spare_take(const struct team_slots *slots) {
    for (size_t i = 0; i < SPARES_MAX; i++) {
        if (spares[i].map && spares[i].map_bytes == slots->map_bytes &&
            spares[i].stride_bytes == slots->stride_bytes) {
            void *map = spares[i].map;
            spares[i].map = NULL;
            return map;
        }
    }
    return NULL;
}

static void spare_put(const struct team_slots *slots) {
    struct spare *spare = &spares[next_spare];
    for (size_t i = 0; i < SPARES_MAX && spare->map; i++) {
        spare = spares[i].map ? spare : &spares[i];
    }
    if (spare->map) {
        munmap(spare->map, spare->map_bytes);
        next_spare = (next_spare + 1) % SPARES_MAX;
    }
    *spare = (struct spare){slots->map, slots->map_bytes, slots->stride_bytes};
}

static void *map_pages(size_t bytes) {
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/// Maps `count` slots of `bytes` each. Returns false when memory cannot be had.
static bool slots_make(struct team_slots *slots, const char *name, size_t count, size_t bytes,
                       bool guarded) {
    if (count == 0 || bytes == 0) {
        return true;
    }
    // Whole pages, so that threads share no cache line; a guarded slot ends where a page without
    // access begins, and another one lies before it.
    const size_t inner = round_up(bytes, PAGE);
    const size_t lead = guarded ? PAGE : 0;
    slots->count = count;
    slots->bytes = bytes;
    slots->guarded = guarded;
    slots->stride_bytes = inner + lead;
    slots->map_bytes = count * slots->stride_bytes + lead;
    void *spare = guarded ? spare_take(slots) : NULL;
    slots->map = spare ? spare : map_pages(slots->map_bytes);
    if (!slots->map) {
        return false;
    }
    if (!guarded) {
        // Huge pages for what is large, as for tensors: with pages of 4 KiB a packed weight of 200
        // MB took a kernel a third longer in some launches and not in others.
        madvise(slots->map, slots->map_bytes, MADV_HUGEPAGE);
    }
    slots->first = slots->map + lead + (guarded ? inner - round_up(bytes, LINE) : 0);
    if (guarded) {
        for (size_t i = 0; i < count; i++) {
            memset(slots->map + i * slots->stride_bytes + PAGE, SLOT_BYTE, inner);
        }
        for (size_t i = 0; i <= count && !spare; i++) {
            mprotect(slots->map + i * slots->stride_bytes, PAGE, PROT_NONE);
        }
        fault_report_watch(name, slots->map, slots->map_bytes, slots->first,
                           (count - 1) * slots->stride_bytes + bytes);
    }
    return true;
}

static const unsigned char *first_damage(const unsigned char *from, const unsigned char *to) {
    while (from < to && *from == SLOT_BYTE) {
        from++;
    }
    return from < to ? from : NULL;
}

/// Finds a byte beside a guarded slot, on its own pages, that is not as it was filled; NULL when
/// all are.
static const unsigned char *slot_damage(const struct team_slots *slots, size_t i) {
    const unsigned char *page = slots->map + i * slots->stride_bytes + PAGE;
    const unsigned char *slot = slots->first + i * slots->stride_bytes;
    const unsigned char *before = first_damage(page, slot);
    return before ? before
                  : first_damage(slot + slots->bytes, slots->map + (i + 1) * slots->stride_bytes);
}

static void *slot(const struct team_slots *slots, size_t index) {
    return slots->first ? slots->first + index * slots->stride_bytes : NULL;
}

static void slots_free(struct team_slots *slots) {
    if (slots->map) {
        fault_report_forget(slots->map);
        if (slots->guarded && slots->map_bytes <= SPARE_BYTES_MAX) {
            spare_put(slots);
        } else {
            munmap(slots->map, slots->map_bytes);
        }
    }
}

static void note_stray(struct team_case *c, const char *text) {
#pragma omp critical(stray)
    if (c->stray[0] == '\0') {
        snprintf(c->stray, sizeof(c->stray), "%s", text);
    }
}

/// Calls into the kernel: run or pack.
static inline void call(struct team_case *c, abi_guard_fn *fn, const union mha_args *args,
                        void *memory) {
    if (!c->watched) {
        fn(c->kernel, args, memory);
        return;
    }
    char text[sizeof(c->stray)];
    if (!abi_guard_call(fn, c->kernel, args, memory, text, sizeof(text))) {
        note_stray(c, text);
    }
}

/// Where the packed operand of a plane is.
static void *packed_slot(const struct team_case *c, size_t copy, size_t plane, int thread) {
    return c->constant ? slot(&c->constant->slots, copy * c->planes + plane)
                       : slot(&c->packed, c->packs_per_item ? (size_t)thread : plane);
}

/// Makes a step's stray its pipeline's.
static void note_step(struct team_case *c, const struct team_case *step) {
    char text[sizeof(c->stray)];
    snprintf(text, sizeof(text), "%.60s: %.130s", step->kernel->name, step->stray);
    note_stray(c, text);
}

static void run_item(struct team_case *c, size_t copy, size_t i, int thread) {
    union mha_args args = c->args[copy * c->items + i];
    void *packed = NULL;
    if (c->packs) {
        packed = packed_slot(c, copy, c->item_plane[i], thread);
        if (c->packs_per_item) {
            call(c, c->driver->pack, &args, packed);
        }
    }
    c->driver->attach(&args, packed, c->state);
    call(c, c->driver->run, &args, slot(&c->workspace, (size_t)thread));
}

static void pack_plane(struct team_case *c, size_t copy, size_t plane, int thread) {
    call(c, c->driver->pack, &c->args[copy * c->items + plane * c->blocks],
         packed_slot(c, copy, plane, thread));
}

/// Runs a pipeline; `ns`, when not NULL, gets the time of each step.
static void call_steps(struct team_case *c, size_t copy, double *ns) {
    c->ran = c->threads;
    double start = ns ? team_now_ns() : 0;
    for (size_t i = 0; i < c->steps; i++) {
        struct team_case *step = &c->step[i].team;
        step->watched = c->watched;
        step->backwards = c->backwards;
        team_case_call(step, copy);
        c->ran = step->ran < c->ran ? step->ran : c->ran;
        if (ns) {
            const double end = team_now_ns();
            ns[i] = end - start;
            start = end;
        }
        if (step->stray[0] != '\0') {
            note_step(c, step);
        }
    }
}

void team_case_call_steps(struct team_case *c, size_t copy, double *ns) {
    call_steps(c, copy, ns);
}

/// Packs constants, before anything else is done with them.
static void pack_constants(struct team_case *c) {
    if (c->constant && !c->constant->packed) {
        c->constant->packed = true;
        for (size_t copy = 0; copy < c->copies; copy++) {
            team_case_pack(c, copy);
        }
    }
}

static void touch_slot(void *context, size_t i, int thread) {
    const struct team_slots *slots = context;
    (void)thread;
    volatile unsigned char *page = slots->map + i * slots->stride_bytes;
    for (size_t at = 0; at < slots->stride_bytes; at += PAGE) {
        page[at] = page[at];
    }
}

static void touch_own_slot(void *context, int thread) {
    touch_slot(context, (size_t)thread, thread);
}

/// Makes the system find memory for slots that it has only promised.
static void touch_slots(struct team_slots *slots, int threads, bool one_a_thread) {
    if (slots->guarded || slots->count == 0) {
        return;
    }
    if (one_a_thread) {
        team_each(threads, touch_own_slot, slots);
    } else {
        team_for(threads, slots->count, touch_slot, slots);
    }
}

void team_case_prepare(struct team_case *c) {
    for (size_t i = 0; i < c->steps; i++) {
        struct team_case *step = &c->step[i].team;
        step->watched = c->watched;
        team_case_prepare(step);
        if (step->stray[0] != '\0') {
            note_step(c, step);
        }
    }
    for (size_t i = 0; i < c->buffers; i++) {
        touch_slots(&c->buffer[i], c->threads, false);
    }
    touch_slots(&c->workspace, c->threads, true);
    touch_slots(&c->packed, c->threads, c->packs_per_item);
    pack_constants(c);
}

void team_case_call(struct team_case *c, size_t copy) {
    if (c->steps > 0) {
        call_steps(c, copy, NULL);
        return;
    }
    const bool pack_first = c->packs && !c->packs_per_item && !c->constant;
    pack_constants(c);
    if (c->threads <= 1) {
        for (size_t p = 0; pack_first && p < c->planes; p++) {
            pack_plane(c, copy, p, 0);
        }
        for (size_t i = 0; i < c->items; i++) {
            run_item(c, copy, c->backwards ? c->items - 1 - i : i, 0);
        }
        c->ran = 1;
        return;
    }
#pragma omp parallel num_threads(c->threads)
    {
        const int thread = omp_get_thread_num();
        if (pack_first) {
#pragma omp for schedule(dynamic)
            for (size_t p = 0; p < c->planes; p++) {
                pack_plane(c, copy, p, thread);
            }
        }
#pragma omp for schedule(dynamic) nowait
        for (size_t i = 0; i < c->items; i++) {
            run_item(c, copy, i, thread);
        }
        if (thread == 0) {
            c->ran = omp_get_num_threads();
        }
    }
}

void team_case_pack(struct team_case *c, size_t copy) {
    for (size_t i = 0; i < c->steps; i++) {
        if (!c->step[i].team.constant) {
            team_case_pack(&c->step[i].team, copy);
        }
    }
    if (!c->packs || c->steps > 0) {
        return;
    }
    if (c->threads <= 1) {
        for (size_t p = 0; p < c->planes; p++) {
            pack_plane(c, copy, p, 0);
        }
        return;
    }
#pragma omp parallel for num_threads(c->threads) schedule(dynamic)
    for (size_t p = 0; p < c->planes; p++) {
        pack_plane(c, copy, p, omp_get_thread_num());
    }
}

double team_case_probe_ns(struct team_case *c) {
    double sum = 0;
    for (size_t i = 0; i < c->steps; i++) {
        struct team_case *step = &c->step[i].team;
        step->watched = c->watched;
        sum += team_case_probe_ns(step);
        if (step->stray[0] != '\0') {
            note_step(c, step);
        }
    }
    if (c->steps > 0) {
        return sum;
    }
    if (c->items == 0) {
        return 0;
    }
    pack_constants(c);
    // Of a causal problem the middle item does the average work.
    const size_t i = c->items / 2;
    const double start = team_now_ns();
    run_item(c, 0, i, 0);
    return (team_now_ns() - start) * (double)c->items / c->threads;
}

static struct team_constant *constants;

/// Gets a place for a packed weight, or the one that another case of the kernel has.
static struct team_constant *constant_get(const struct team_case *c, const float *weight,
                                          size_t bytes, bool guarded) {
    for (struct team_constant *k = constants; k && !guarded; k = k->next) {
        if (k->kernel == c->kernel && k->weight == weight && k->slots.bytes == bytes &&
            k->slots.count == c->copies * c->planes && !k->slots.guarded) {
            k->users++;
            return k;
        }
    }
    struct team_constant *made = diag_alloc(calloc(1, sizeof(*made)));
    if (!slots_make(&made->slots, "the packed operand", c->copies * c->planes, bytes, guarded)) {
        free(made);
        return NULL;
    }
    made->kernel = c->kernel;
    made->weight = weight;
    made->users = 1;
    made->next = constants;
    constants = made;
    return made;
}

static void constant_release(struct team_constant *constant) {
    if (--constant->users > 0) {
        return;
    }
    for (struct team_constant **at = &constants; *at; at = &(*at)->next) {
        if (*at == constant) {
            *at = constant->next;
            break;
        }
    }
    slots_free(&constant->slots);
    free(constant);
}

/// Maps the buffers of a pipeline and describes them for each copy: [copies][OP_BUFFERS_MAX].
static bool buffers_make(struct team_case *c, struct tensor *tensors, bool guarded) {
    struct tensor_shape shapes[OP_BUFFERS_MAX];
    c->buffers = c->driver->buffers(c->problem, pipeline_form(c->kernel), shapes);
    c->buffer = diag_alloc(calloc(c->buffers + 1, sizeof(*c->buffer)));
    for (size_t i = 0; i < c->buffers; i++) {
        const struct tensor_shape *s = &shapes[i];
        const size_t count = s->role == TENSOR_INPUT ? c->copies : 1;
        // A row even where there is none: steps take views of columns of an empty buffer too.
        const size_t rows = s->planes * s->rows > 0 ? s->planes * s->rows : 1;
        if (!slots_make(&c->buffer[i], s->name, count, rows * s->cols * sizeof(float), guarded)) {
            return false;
        }
        for (size_t copy = 0; copy < c->copies; copy++) {
            tensors[copy * OP_BUFFERS_MAX + i] = (struct tensor){
                .shape = *s,
                .data = slot(&c->buffer[i], count > 1 ? copy : 0),
                .row_stride = s->cols,
                .plane_stride = s->rows * s->cols,
            };
        }
    }
    return true;
}

/// Tells whether a step's tensors have the shapes that its op's driver expects.
static bool step_fits(const struct op_step *step) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    const size_t count = step->driver->tensors(&step->problem, shapes);
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        const struct tensor_shape *s = &step->tensors[i].shape;
        fits = fits && s->planes == shapes[i].planes && s->rows == shapes[i].rows &&
               s->cols == shapes[i].cols;
    }
    return fits;
}

/// Makes a case of each step of a pipeline.
static bool steps_make(struct team_case *c, const struct tensor *const *tensors, size_t block_rows,
                       bool guarded, char *why, size_t why_size) {
    const struct op_driver *driver = c->driver;
    const struct op_pipeline *form = pipeline_form(c->kernel);
    struct tensor *buffers = diag_alloc(calloc(c->copies * OP_BUFFERS_MAX, sizeof(*buffers)));
    struct op_step *steps = diag_alloc(calloc(c->copies * OP_STEPS_MAX, sizeof(*steps)));
    const struct tensor **views = diag_alloc(calloc(c->copies, sizeof(const struct tensor *)));
    bool good = buffers_make(c, buffers, guarded);
    size_t count = 0;
    if (!good) {
        snprintf(why, why_size, "no memory for what the steps hand on");
    }
    for (size_t copy = 0; copy < c->copies && good; copy++) {
        driver->prime(c->problem, tensors[copy], buffers + copy * OP_BUFFERS_MAX);
        count = driver->compose(c->problem, form, tensors[copy], buffers + copy * OP_BUFFERS_MAX,
                                steps + copy * OP_STEPS_MAX);
    }
    c->step = diag_alloc(calloc(count + 1, sizeof(*c->step)));
    for (size_t i = 0; i < count && good; i++) {
        struct team_step *step = &c->step[i];
        char text[300];
        for (size_t copy = 0; copy < c->copies; copy++) {
            views[copy] = steps[copy * OP_STEPS_MAX + i].tensors;
        }
        step->problem = steps[i].problem;
        const struct mha_kernel *kernel = pipeline_part(c->kernel, steps[i].driver->name);
        if (!step_fits(&steps[i])) {
            snprintf(why, why_size, "%s: the tensors of the step do not fit", kernel->name);
            good = false;
            break;
        }
        good = team_case_make(&step->team, steps[i].driver, kernel, &step->problem, c->threads,
                              c->copies, views, block_rows, guarded, text, sizeof(text));
        if (!good) {
            snprintf(why, why_size, "%s: %s", kernel->name, text);
            break;
        }
        c->steps++;
        c->create_ns += step->team.create_ns;
        c->packs = c->packs || (step->team.packs && !step->team.constant);
    }
    free(buffers);
    free(steps);
    free(views);
    if (!good) {
        team_case_free(c);
    }
    return good;
}

bool team_case_make(struct team_case *c, const struct op_driver *driver,
                    const struct mha_kernel *kernel, const struct problem *problem, int threads,
                    size_t copies, const struct tensor *const *tensors, size_t block_rows,
                    bool guarded, char *why, size_t why_size) {
    memset(c, 0, sizeof(*c));
    c->driver = driver;
    c->kernel = kernel;
    c->problem = problem;
    c->threads = threads;
    c->copies = copies;
    if (driver->pipelines) {
        return steps_make(c, tensors, block_rows, guarded, why, why_size);
    }
    size_t rows = 0;
    driver->grid(problem, &c->planes, &rows);
    const size_t multiple = kernel->row_multiple ? kernel->row_multiple : 1;
    size_t block = block_rows ? block_rows : rows;
    // Four items a thread even out what the threads and the causal rows differ by.
    const size_t wanted = 4 * (size_t)threads;
    if (!block_rows && threads > 1 && c->planes < wanted && c->planes > 0) {
        const size_t blocks = (wanted + c->planes - 1) / c->planes;
        block = (rows + blocks - 1) / blocks;
    }
    block = block ? round_up(block, multiple) : multiple;
    c->blocks = rows ? (rows + block - 1) / block : 0;
    c->items = c->planes * c->blocks;
    c->args = diag_alloc(calloc(copies * c->items + 1, sizeof(*c->args)));
    c->item_plane = diag_alloc(calloc(c->items + 1, sizeof(*c->item_plane)));
    for (size_t copy = 0; copy < copies; copy++) {
        for (size_t i = 0; i < c->items; i++) {
            struct item item = {i / c->blocks, i % c->blocks * block, block};
            if (item.first_row + item.rows > rows) {
                item.rows = rows - item.first_row;
            }
            c->item_plane[i] = item.plane;
            driver->item_args(problem, tensors[copy], &item, &c->args[copy * c->items + i]);
        }
    }
    if (kernel->create) {
        const struct mha_mask mask = problem_mask(problem, 0);
        const double start = team_now_ns();
        c->state = kernel->create(&problem->shape, &mask);
        c->create_ns = team_now_ns() - start;
        if (!c->state) {
            snprintf(why, why_size, "create() failed for this shape");
            team_case_free(c);
            return false;
        }
        for (size_t i = 0; i < copies * c->items; i++) {
            driver->attach(&c->args[i], NULL, c->state);
        }
    }
    const size_t workspace_bytes =
        kernel->workspace_bytes ? kernel->workspace_bytes(&problem->shape) : 0;
    const size_t packed_bytes = driver->pack && kernel->packed_bytes && c->items > 0
                                    ? kernel->packed_bytes(&problem->shape)
                                    : 0;
    c->packs = packed_bytes > 0;
    const bool once = c->packs && driver->constant_pack;
    c->packs_per_item = c->blocks == 1 && !once;
    if (once) {
        c->constant = constant_get(c, tensors[0][1].data, packed_bytes, guarded);
    }
    if (!slots_make(&c->workspace, "the workspace", (size_t)threads, workspace_bytes, guarded) ||
        (once ? !c->constant
              : !slots_make(&c->packed, "the packed operand",
                            c->packs_per_item ? (size_t)threads : c->planes, packed_bytes,
                            guarded))) {
        snprintf(why, why_size, "no memory for a workspace of %zu and packed operands of %zu bytes",
                 workspace_bytes, packed_bytes);
        team_case_free(c);
        return false;
    }
    return true;
}

/// Looks for damage beside slots that are called `name`.
static void inspect(struct team_case *c, const struct team_slots *slots, const char *name) {
    for (size_t i = 0; slots->guarded && i < slots->count; i++) {
        const unsigned char *damage = slot_damage(slots, i);
        const unsigned char *begin = slots->first + i * slots->stride_bytes;
        if (damage) {
            char text[sizeof(c->stray)];
            snprintf(text, sizeof(text), "wrote %s the %s of %zu bytes",
                     damage < begin ? "before" : "behind", name, slots->bytes);
            note_stray(c, text);
        }
    }
}

void team_case_inspect(struct team_case *c) {
    inspect(c, &c->workspace, "workspace");
    inspect(c, c->constant ? &c->constant->slots : &c->packed, "packed operand");
    for (size_t i = 0; i < c->steps; i++) {
        team_case_inspect(&c->step[i].team);
        if (c->step[i].team.stray[0] != '\0') {
            note_step(c, &c->step[i].team);
        }
    }
    struct tensor_shape shapes[OP_BUFFERS_MAX];
    if (c->buffers > 0) {
        c->driver->buffers(c->problem, pipeline_form(c->kernel), shapes);
    }
    for (size_t i = 0; i < c->buffers; i++) {
        inspect(c, &c->buffer[i], shapes[i].name);
    }
}

void team_case_free(struct team_case *c) {
    for (size_t i = 0; i < c->steps; i++) {
        team_case_free(&c->step[i].team);
    }
    for (size_t i = 0; i < c->buffers; i++) {
        slots_free(&c->buffer[i]);
    }
    free(c->step);
    free(c->buffer);
    if (c->state && c->kernel->destroy) {
        c->kernel->destroy(c->state);
    }
    free(c->args);
    free(c->item_plane);
    if (c->constant) {
        constant_release(c->constant);
    }
    slots_free(&c->packed);
    slots_free(&c->workspace);
    memset(c, 0, sizeof(*c));
}
