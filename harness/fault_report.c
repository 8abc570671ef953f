#include "fault_report.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

/// Mappings that can be known at a time: the tensors of a problem, its scratch and its ceilings.
enum { MAPPINGS_MAX = 64 };

/// Bytes of the handler's stack; the kernel's part of it alone exceeds MINSIGSTKSZ with AVX-512.
enum { HANDLER_STACK_BYTES = 64 * 1024 };

/// Written outside the handler, by one thread, while no kernel runs.
static struct mapping {
    const char *name;
    uintptr_t map, map_end;
    uintptr_t first, end;
} mappings[MAPPINGS_MAX];

static int event_to = -1;

void fault_report_watch(const char *name, const void *map, size_t map_bytes, const void *first,
                        size_t bytes) {
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        if (!mappings[i].name) {
            const uintptr_t from = (uintptr_t)map, start = (uintptr_t)first;
            mappings[i] = (struct mapping){name, from, from + map_bytes, start, start + bytes};
            return;
        }
    }
}

void fault_report_forget(const void *map) {
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        if (mappings[i].name && mappings[i].map == (uintptr_t)map) {
            mappings[i].name = NULL;
        }
    }
}

/// A line under construction. snprintf() may not be called in a handler.
struct line {
    char text[256];
    size_t used;
};

static void add(struct line *line, const char *text) {
    const size_t length = strlen(text);
    if (line->used + length <= sizeof(line->text)) {
        memcpy(line->text + line->used, text, length);
        line->used += length;
    }
}

static void add_number(struct line *line, uintptr_t value, unsigned base) {
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value > 0);
    add(line, digits + at);
}

static void send_line(const char *text) {
    struct line line = {.used = 0};
    add(&line, "{\"event\":\"fault\",\"text\":\"");
    add(&line, text);
    add(&line, "\"}\n");
    // One write: the parent reads whole lines. It may be gone: then nobody asks.
    if (event_to >= 0 && write(event_to, line.text, line.used) < 0) {
        return;
    }
}

/// What the faulting instruction did; the processor tells only on x86.
static const char *access_of(const void *context) {
#if defined(__x86_64__)
    enum { PAGE_FAULT_WRITE = 2 };  // Intel SDM vol. 3, 4.7: bit 1 of the error code
    const ucontext_t *at = context;
    return at->uc_mcontext.gregs[REG_ERR] & PAGE_FAULT_WRITE ? "wrote" : "read";
#else
    (void)context;
    return "touched memory";
#endif
}

static void describe(struct line *line, const siginfo_t *info, const void *context) {
    const uintptr_t address = (uintptr_t)info->si_addr;
    if (info->si_code == SI_USER || info->si_code == SI_TKILL) {
        add(line,
            info->si_pid == getpid() ? "raised by the process itself" : "sent by another process");
        return;
    }
#if defined(__x86_64__)
    // Without an address: what is no page fault, but a general protection exception.
    if (info->si_code == SI_KERNEL) {
        add(line, "an aligned access to an unaligned address, or an address that cannot be");
        return;
    }
#endif
    add(line, access_of(context));
    for (size_t i = 0; i < MAPPINGS_MAX; i++) {
        const struct mapping *m = &mappings[i];
        if (!m->name || address < m->map || address >= m->map_end) {
            continue;
        }
        if (address < m->first) {
            add(line, " before ");
            add(line, m->name);
            add(line, ", at its start - ");
            add_number(line, m->first - address, 10);
        } else if (address >= m->end) {
            add(line, " behind ");
            add(line, m->name);
            add(line, ", at its end + ");
            add_number(line, address - m->end, 10);
        } else {
            add(line, " in ");
            add(line, m->name);
            add(line, ", which is read-only, at its start + ");
            add_number(line, address - m->first, 10);
        }
        add(line, " bytes");
        return;
    }
    add(line, " at 0x");
    add_number(line, address, 16);
    add(line, ", near no tensor");
}

static void on_fault(int number, siginfo_t *info, void *context) {
    struct line line = {.used = 0};
    describe(&line, info, context);
    line.text[line.used < sizeof(line.text) ? line.used : sizeof(line.text) - 1] = '\0';
    send_line(line.text);
    // Pending until the handler returns, then fatal: the parent sees the signal itself.
    signal(number, SIG_DFL);
    raise(number);
}

void fault_report_thread(void) {
    static _Thread_local bool ready;
    if (ready) {
        return;
    }
    ready = true;
    // Lives as long as the thread, and the worker's threads live as long as the worker.
    void *stack = malloc(HANDLER_STACK_BYTES);
    const stack_t handler = {.ss_sp = stack, .ss_size = HANDLER_STACK_BYTES};
    if (stack) {
        sigaltstack(&handler, NULL);
    }
}

void fault_report_start(int event_fd) {
    event_to = event_fd;
    fault_report_thread();
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

_Noreturn void fault_report_abort(const char *text) {
    send_line(text);
    abort();
}
