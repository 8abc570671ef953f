/// Faults of conduct: kernels that end the process, do not end, are not the same twice, or leave
/// the processor in another state than they found it. And the library's entry.
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

static void softmax_abort(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    abort();
}

static void softmax_exit(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    exit(0);
}

static void softmax_loop(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    for (volatile unsigned rounds = 1; rounds > 0; rounds = rounds + 2) {
    }
}

static void softmax_sigill(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
#if defined(__x86_64__)
    __asm__ volatile("ud2");
#else
    __asm__ volatile(".inst 0");
#endif
}

static void softmax_sigfpe(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
#if defined(__x86_64__)
    volatile int one = 1, zero = 0;
    one = one / zero;
#else
    raise(SIGFPE);  // its division by zero is no fault
#endif
}

static void softmax_sigbus(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    raise(SIGBUS);
}

/// One bit more in one element. NaN and the infinities stay what they are.
static void nudge(const struct mha_softmax_args *args) {
    if (args->rows > 0 && args->cols > 0 && args->y[0] > 0x1p-100f) {
        args->y[0] = nextafterf(args->y[0], 0);
    }
}

static unsigned calls;

static void softmax_restless(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    // Knuth's multiplicative hash: no rhythm that could be that of the items.
    if (++calls * 2654435761u >> 31) {
        nudge(args);
    }
}

static void softmax_declared(const struct mha_softmax_args *args, void *memory) {
    softmax_restless(args, memory);
}

/// Right for a hundred calls, which is more than verifying takes.
static void softmax_tires(const struct mha_softmax_args *args, void *memory) {
    static unsigned done;
    softmax_right(args, memory);
    if (++done > 100) {
        nudge(args);
    }
}

/// Then wrong by far.
static void softmax_collapses(const struct mha_softmax_args *args, void *memory) {
    static unsigned done;
    softmax_right(args, memory);
    if (++done > 100 && args->rows > 0 && args->cols > 0) {
        args->y[0] = 2;
    }
}

/// Then leaves flush-to-zero on.
static void set_flush(void) {
#if defined(__x86_64__)
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= 0x8000;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#else
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= UINT64_C(1) << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}

static void softmax_flush_later(const struct mha_softmax_args *args, void *memory) {
    static unsigned done;
    softmax_right(args, memory);
    if (++done > 100) {
        set_flush();
    }
}

/// No work where the output holds a number already: an answer from the call before, right to the
/// last bit.
static void softmax_remembers(const struct mha_softmax_args *args, void *memory) {
    if (args->rows > 0 && args->cols > 0 && isnan(args->y[0])) {
        softmax_right(args, memory);
    }
}

/// Three times the work.
static void softmax_slow(const struct mha_softmax_args *args, void *memory) {
    for (int i = 0; i < 3; i++) {
        softmax_right(args, memory);
    }
}

static void softmax_flush(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    set_flush();
}

static void softmax_rounding(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    fesetround(FE_TOWARDZERO);
}

#if defined(__x86_64__)
static void softmax_daz(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr |= 0x0040;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}

static void softmax_traps(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    mxcsr &= ~0x0200u;  // division by zero
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
}

static void softmax_x87(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    const uint16_t single = 0x007f;
    __asm__ volatile("fldcw %0" : : "m"(single));
}

// No clobbers are declared below: that is the fault.
static void softmax_register(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("movq $1, %rbx");
}

static void softmax_registers(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("movq $1, %r12\n\tmovq $1, %r15");
}

static void softmax_direction(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("std");
}

static void softmax_uppers(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("vpcmpeqd %ymm0, %ymm0, %ymm0");
}

/// Aligned loads, whatever the address.
static void softmax_aligned(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    if (args->cols >= 8) {
        __asm__ volatile("vmovaps (%0), %%ymm0\n\tvzeroupper" : : "r"(args->x) : "xmm0");
    }
}
#else
static void softmax_register(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("mov x19, #1");
}

static void softmax_registers(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    __asm__ volatile("fmov d8, #1.0\n\tmov x28, #1");
}
#endif

const struct mha_library_entry conduct_faults[] = {
    FAULT(softmax, abort, .flags = 0),
    FAULT(softmax, exit, .flags = 0),
    FAULT(softmax, loop, .flags = 0),
    FAULT(softmax, sigill, .flags = 0),
    FAULT(softmax, sigfpe, .flags = 0),
    FAULT(softmax, sigbus, .flags = 0),
    FAULT(softmax, restless, .flags = 0),
    FAULT(softmax, declared, .flags = MHA_FLAG_NONDETERMINISTIC),
    FAULT(softmax, tires, .flags = 0),
    FAULT(softmax, collapses, .flags = 0),
    FAULT(softmax, flush_later, .flags = 0),
    FAULT(softmax, remembers, .flags = 0),
    FAULT(softmax, slow, .flags = 0),
    FAULT(softmax, flush, .flags = 0),
    FAULT(softmax, rounding, .flags = 0),
    FAULT(softmax, register, .flags = 0),
    FAULT(softmax, registers, .flags = 0),
#if defined(__x86_64__)
    FAULT(softmax, daz, .flags = 0),
    FAULT(softmax, traps, .flags = 0),
    FAULT(softmax, x87, .flags = 0),
    FAULT(softmax, direction, .flags = 0),
    FAULT_ISA(softmax, avx2, uppers, .flags = 0),
    FAULT_ISA(softmax, avx2, aligned, .flags = 0),
#endif
};
const size_t conduct_fault_count = sizeof(conduct_faults) / sizeof(conduct_faults[0]);

/// Room for all parts.
enum { FAULTS_MAX = 256 };

const struct mha_library *mha_kernel_library(void) {
    static struct mha_library_entry all[FAULTS_MAX];
    static struct mha_library library = {
        .abi_version = MHA_ABI_VERSION,
        .kernel_bytes = sizeof(struct mha_kernel),
        .name = "faults",
        .version = "1",
        .entries = all,
    };
    const struct {
        const struct mha_library_entry *entries;
        size_t count;
    } parts[] = {{value_faults, value_fault_count},
                 {memory_faults, memory_fault_count},
                 {conduct_faults, conduct_fault_count},
                 {position_faults, position_fault_count},
                 {fused_faults, fused_fault_count},
                 {narrow_faults, narrow_fault_count},
                 // Last, so that they run after the kernels that go wrong.
                 {right_kernels, right_kernel_count}};
    library.count = 0;
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
        for (size_t i = 0; i < parts[p].count && library.count < FAULTS_MAX; i++) {
            all[library.count++] = parts[p].entries[i];
        }
    }
    return &library;
}
