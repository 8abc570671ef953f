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
    void *map =
        mmap(NULL, slots->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    slots->map = map;
    slots->first = slots->map + lead + (guarded ? inner - round_up(bytes, LINE) : 0);
    if (guarded) {
        memset(map, SLOT_BYTE, slots->map_bytes);
        for (size_t i = 0; i <= count; i++) {
            mprotect(slots->map + i * slots->stride_bytes, PAGE, PROT_NONE);
        }
        fault_report_watch(name, map, slots->map_bytes, slots->first,
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
        munmap(slots->map, slots->map_bytes);
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
    return slot(&c->packed, c->packs_per_item ? (size_t)thread
                            : c->packs_once   ? copy * c->planes + plane
                                              : plane);
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

/// Packs constants, before anything else is done with them.
static void pack_constants(struct team_case *c) {
    if (c->packs_once && !c->packed_once) {
        c->packed_once = true;
        for (size_t copy = 0; copy < c->copies; copy++) {
            team_case_pack(c, copy);
        }
    }
}

void team_case_call(struct team_case *c, size_t copy) {
    const bool pack_first = c->packs && !c->packs_per_item && !c->packs_once;
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
    if (!c->packs) {
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
    c->packs_once = c->packs && driver->constant_pack;
    c->packs_per_item = c->blocks == 1 && !c->packs_once;
    const size_t packed_count = c->packs_per_item ? (size_t)threads
                                : c->packs_once   ? copies * c->planes
                                                  : c->planes;
    if (!slots_make(&c->workspace, "the workspace", (size_t)threads, workspace_bytes, guarded) ||
        !slots_make(&c->packed, "the packed operand", packed_count, packed_bytes, guarded)) {
        snprintf(why, why_size, "no memory for a workspace of %zu and packed operands of %zu bytes",
                 workspace_bytes, packed_bytes);
        team_case_free(c);
        return false;
    }
    return true;
}

void team_case_inspect(struct team_case *c) {
    const struct team_slots *const all[] = {&c->workspace, &c->packed};
    static const char *const names[] = {"workspace", "packed operand"};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; all[k]->guarded && i < all[k]->count; i++) {
            const unsigned char *damage = slot_damage(all[k], i);
            const unsigned char *begin = all[k]->first + i * all[k]->stride_bytes;
            if (damage) {
                char text[sizeof(c->stray)];
                snprintf(text, sizeof(text), "wrote %s the %s of %zu bytes",
                         damage < begin ? "before" : "behind", names[k], all[k]->bytes);
                note_stray(c, text);
            }
        }
    }
}

void team_case_free(struct team_case *c) {
    if (c->state && c->kernel->destroy) {
        c->kernel->destroy(c->state);
    }
    free(c->args);
    free(c->item_plane);
    slots_free(&c->packed);
    slots_free(&c->workspace);
    memset(c, 0, sizeof(*c));
}
