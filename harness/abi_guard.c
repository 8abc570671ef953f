#include "abi_guard.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault_report.h"

// --- the trampoline
// -----------------------------------------------------------------------------------
//
// In assembly, since a compiler saves what it uses: a register that the kernel clobbers would be
// put right, or be missed, as the compiler happens to allocate. The offsets below are those of
// struct record.

/// Words of stack above the kernel's frame that are watched; 128 in the assembly below.
enum { CANARY_WORDS = 128 };

#if defined(__x86_64__)

enum { SAVED = 6 };

static const char *const saved_names[SAVED] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};

struct record {
    uint64_t kept[SAVED];  ///< The caller's values.
    uint64_t seen[SAVED];  ///< What the kernel left.
    uint64_t smashed;      ///< First damaged word of the stack, from 1; 0: none.
    uint64_t flags;        ///< RFLAGS.
    uint64_t ask_in_use;   ///< In: XGETBV(1) may be asked.
    uint64_t in_use;       ///< Its answer.
};

_Static_assert(offsetof(struct record, seen) == 48 && offsetof(struct record, smashed) == 96 &&
                   offsetof(struct record, flags) == 104 &&
                   offsetof(struct record, ask_in_use) == 112 &&
                   offsetof(struct record, in_use) == 120,
               "the trampoline has these offsets");

// abi_guard_trampoline(record rdi, fn rsi, kernel rdx, args rcx, memory r8)
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl abi_guard_trampoline\n"
    ".hidden abi_guard_trampoline\n"
    ".type abi_guard_trampoline, @function\n"
    "abi_guard_trampoline:\n"
    "    .cfi_startproc\n"
    "    movq %rbx, 0(%rdi)\n"
    "    movq %rbp, 8(%rdi)\n"
    "    movq %r12, 16(%rdi)\n"
    "    movq %r13, 24(%rdi)\n"
    "    movq %r14, 32(%rdi)\n"
    "    movq %r15, 40(%rdi)\n"
    // The canary, and above it the way back to the record.
    "    subq $1032, %rsp\n"
    "    .cfi_def_cfa_offset 1040\n"
    "    movq %rdi, 1024(%rsp)\n"
    "    movq %rsi, %r10\n"
    "    movq %rcx, %r11\n"
    "    movabsq $0x5afe57ac6ca11ed0, %rax\n"
    "    movq %rsp, %rdi\n"
    "    movl $128, %ecx\n"
    "    rep stosq\n"
    "    leaq 1(%rax), %rbx\n"
    "    leaq 2(%rax), %rbp\n"
    "    leaq 3(%rax), %r12\n"
    "    leaq 4(%rax), %r13\n"
    "    leaq 5(%rax), %r14\n"
    "    leaq 6(%rax), %r15\n"
    "    movq %rdx, %rdi\n"
    "    movq %r11, %rsi\n"
    "    movq %r8, %rdx\n"
    "    callq *%r10\n"
    "    movq 1024(%rsp), %r9\n"
    "    movq %rbx, 48(%r9)\n"
    "    movq %rbp, 56(%r9)\n"
    "    movq %r12, 64(%r9)\n"
    "    movq %r13, 72(%r9)\n"
    "    movq %r14, 80(%r9)\n"
    "    movq %r15, 88(%r9)\n"
    "    pushfq\n"
    "    popq 104(%r9)\n"
    "    cld\n"
    "    cmpq $0, 112(%r9)\n"
    "    je 1f\n"
    "    movl $1, %ecx\n"
    "    xgetbv\n"
    "    movl %eax, 120(%r9)\n"
    "1:  movq 0(%r9), %rbx\n"
    "    movq 8(%r9), %rbp\n"
    "    movq 16(%r9), %r12\n"
    "    movq 24(%r9), %r13\n"
    "    movq 32(%r9), %r14\n"
    "    movq 40(%r9), %r15\n"
    "    movabsq $0x5afe57ac6ca11ed0, %rax\n"
    "    movq %rsp, %rdi\n"
    "    movl $128, %ecx\n"
    "    repe scasq\n"
    "    movl $0, %eax\n"
    "    je 2f\n"
    "    movl $128, %eax\n"
    "    subl %ecx, %eax\n"
    "2:  movq %rax, 96(%r9)\n"
    "    addq $1032, %rsp\n"
    "    .cfi_def_cfa_offset 8\n"
    "    retq\n"
    "    .cfi_endproc\n"
    ".size abi_guard_trampoline, . - abi_guard_trampoline\n");

#elif defined(__aarch64__)

enum { SAVED = 18 };

static const char *const saved_names[SAVED] = {"x19", "x20", "x21", "x22", "x23", "x24",
                                               "x25", "x26", "x27", "x28", "d8",  "d9",
                                               "d10", "d11", "d12", "d13", "d14", "d15"};

struct record {
    uint64_t kept[SAVED];  ///< The caller's values.
    uint64_t seen[SAVED];  ///< What the kernel left.
    uint64_t smashed;      ///< First damaged word of the stack, from 1; 0: none.
};

_Static_assert(offsetof(struct record, seen) == 144 && offsetof(struct record, smashed) == 288,
               "the trampoline has these offsets");

// abi_guard_trampoline(record x0, fn x1, kernel x2, args x3, memory x4)
__asm__(
    ".text\n"
    ".p2align 4\n"
    ".globl abi_guard_trampoline\n"
    ".hidden abi_guard_trampoline\n"
    ".type abi_guard_trampoline, %function\n"
    "abi_guard_trampoline:\n"
    "    .cfi_startproc\n"
    "    stp x29, x30, [sp, #-16]!\n"
    "    .cfi_def_cfa_offset 16\n"
    "    .cfi_offset x29, -16\n"
    "    .cfi_offset x30, -8\n"
    "    mov x29, sp\n"
    "    .cfi_def_cfa_register x29\n"
    "    stp x19, x20, [x0, #0]\n"
    "    stp x21, x22, [x0, #16]\n"
    "    stp x23, x24, [x0, #32]\n"
    "    stp x25, x26, [x0, #48]\n"
    "    stp x27, x28, [x0, #64]\n"
    "    stp d8, d9, [x0, #80]\n"
    "    stp d10, d11, [x0, #96]\n"
    "    stp d12, d13, [x0, #112]\n"
    "    stp d14, d15, [x0, #128]\n"
    // The canary, and above it the way back to the record.
    "    sub sp, sp, #1040\n"
    "    str x0, [sp, #1024]\n"
    "    movz x9, #0x1ed0\n"
    "    movk x9, #0x6ca1, lsl #16\n"
    "    movk x9, #0x57ac, lsl #32\n"
    "    movk x9, #0x5afe, lsl #48\n"
    "    mov x10, sp\n"
    "    mov x11, #128\n"
    "1:  str x9, [x10], #8\n"
    "    subs x11, x11, #1\n"
    "    b.ne 1b\n"
    "    add x19, x9, #1\n"
    "    add x20, x9, #2\n"
    "    add x21, x9, #3\n"
    "    add x22, x9, #4\n"
    "    add x23, x9, #5\n"
    "    add x24, x9, #6\n"
    "    add x25, x9, #7\n"
    "    add x26, x9, #8\n"
    "    add x27, x9, #9\n"
    "    add x28, x9, #10\n"
    "    add x10, x9, #11\n"
    "    fmov d8, x10\n"
    "    add x10, x9, #12\n"
    "    fmov d9, x10\n"
    "    add x10, x9, #13\n"
    "    fmov d10, x10\n"
    "    add x10, x9, #14\n"
    "    fmov d11, x10\n"
    "    add x10, x9, #15\n"
    "    fmov d12, x10\n"
    "    add x10, x9, #16\n"
    "    fmov d13, x10\n"
    "    add x10, x9, #17\n"
    "    fmov d14, x10\n"
    "    add x10, x9, #18\n"
    "    fmov d15, x10\n"
    "    mov x9, x1\n"
    "    mov x0, x2\n"
    "    mov x1, x3\n"
    "    mov x2, x4\n"
    "    blr x9\n"
    "    ldr x0, [sp, #1024]\n"
    "    stp x19, x20, [x0, #144]\n"
    "    stp x21, x22, [x0, #160]\n"
    "    stp x23, x24, [x0, #176]\n"
    "    stp x25, x26, [x0, #192]\n"
    "    stp x27, x28, [x0, #208]\n"
    "    stp d8, d9, [x0, #224]\n"
    "    stp d10, d11, [x0, #240]\n"
    "    stp d12, d13, [x0, #256]\n"
    "    stp d14, d15, [x0, #272]\n"
    "    ldp x19, x20, [x0, #0]\n"
    "    ldp x21, x22, [x0, #16]\n"
    "    ldp x23, x24, [x0, #32]\n"
    "    ldp x25, x26, [x0, #48]\n"
    "    ldp x27, x28, [x0, #64]\n"
    "    ldp d8, d9, [x0, #80]\n"
    "    ldp d10, d11, [x0, #96]\n"
    "    ldp d12, d13, [x0, #112]\n"
    "    ldp d14, d15, [x0, #128]\n"
    "    movz x9, #0x1ed0\n"
    "    movk x9, #0x6ca1, lsl #16\n"
    "    movk x9, #0x57ac, lsl #32\n"
    "    movk x9, #0x5afe, lsl #48\n"
    "    mov x10, sp\n"
    "    mov x11, #0\n"
    "2:  ldr x12, [x10], #8\n"
    "    add x11, x11, #1\n"
    "    cmp x12, x9\n"
    "    b.ne 3f\n"
    "    cmp x11, #128\n"
    "    b.ne 2b\n"
    "    mov x11, #0\n"
    "3:  str x11, [x0, #288]\n"
    "    add sp, sp, #1040\n"
    "    .cfi_def_cfa_register sp\n"
    "    ldp x29, x30, [sp], #16\n"
    "    .cfi_def_cfa_offset 0\n"
    "    ret\n"
    "    .cfi_endproc\n"
    ".size abi_guard_trampoline, . - abi_guard_trampoline\n");

#else
#error "the calling convention of this processor is not known: add its trampoline"
#endif

/// The canary's word; callee-saved register i holds this + 1 + i.
#define PATTERN UINT64_C(0x5afe57ac6ca11ed0)

void abi_guard_trampoline(struct record *record, abi_guard_fn *fn, const struct mha_kernel *kernel,
                          const union mha_args *args, void *memory);

// --- control bits
// -------------------------------------------------------------------------------------

/// Part of a control word, and what a change of it means.
struct field {
    uint64_t mask;
    const char *name;
};

#if defined(__x86_64__)

/// MXCSR without its six sticky flags. Intel SDM vol. 1, fig. 10-3.
static const struct field control_fields[] = {
    {0x0040, "denormals-are-zero"},
    {0x1f80, "exception masks"},
    {0x6000, "rounding mode"},
    {0x8000, "flush-to-zero"},
    {UINT64_C(0x1f3f) << 16, "x87 control word"},  // masks, precision, rounding, infinity
};

static const char control_name[] = "MXCSR";

/// MXCSR, and the x87 control word above it.
static uint64_t control_get(void) {
    uint32_t mxcsr;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return mxcsr | (uint64_t)x87 << 16;
}

static void control_set(uint64_t control) {
    const uint32_t mxcsr = (uint32_t)(control & 0xffff);
    const uint16_t x87 = (uint16_t)(control >> 16);
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    __asm__ volatile("fldcw %0" : : "m"(x87));
}

#else

/// FPCR. Arm ARM, C5.2.8: FZ16, RMode, FZ, DN, AHP, and the trap enables.
static const struct field control_fields[] = {
    {UINT64_C(1) << 19 | UINT64_C(1) << 24, "flush-to-zero"},
    {UINT64_C(3) << 22, "rounding mode"},
    {UINT64_C(1) << 25, "default NaN"},
    {UINT64_C(1) << 26, "alternative half precision"},
    {UINT64_C(0x9f00), "exception traps"},
};

static const char control_name[] = "FPCR";

static uint64_t control_get(void) {
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
}

static void control_set(uint64_t control) {
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}

#endif

static uint64_t control_right;

/// A list of complaints under construction.
struct complaint {
    char *text;
    size_t size, used;
};

static void complain(struct complaint *c, const char *about, const char *what) {
    if (c->used < c->size) {
        const int n = snprintf(c->text + c->used, c->size - c->used, "%s%s%s",
                               c->used > 0 ? ", " : "", about, what);
        c->used += n > 0 ? (size_t)n : 0;
    }
}

static void look_at_control(struct complaint *c) {
    const uint64_t changed = control_get() ^ control_right;
    char about[64];
    snprintf(about, sizeof(about), "changed %s: ", control_name);
    for (size_t i = 0; i < sizeof(control_fields) / sizeof(control_fields[0]); i++) {
        if (changed & control_fields[i].mask) {
            complain(c, about, control_fields[i].name);
        }
    }
    control_set(control_right);
}

bool abi_guard_control_kept(char *text, size_t size) {
    struct complaint c = {.size = size};
    c.text = text;
    look_at_control(&c);
    return c.used == 0;
}

// --- upper halves of vector registers
// -----------------------------------------------------------------

#if defined(__x86_64__)

enum {
    STATE_YMM = 1 << 2,  ///< Upper halves of ymm0-15. Intel SDM vol. 1, 13.1.
    STATE_ZMM = 1 << 6,  ///< Upper halves of zmm0-15.
};

/// State components that the system saves, of those above; 0 when use cannot be asked for.
static uint32_t upper_state;

/// An XSAVE area whose header says that every component is in its initial state.
static struct {
    uint8_t legacy[512];
    uint64_t header[8];
} __attribute__((aligned(64))) initial_area;

/// Zeroes the upper halves; XRSTOR does it without an AVX instruction, which this file must not
/// hold. It loads MXCSR from the area as well.
static void clear_uppers(void) {
    if (upper_state) {
        __asm__ volatile("xrstor %0" : : "m"(initial_area), "a"(upper_state), "d"(0) : "memory");
    }
}

static void find_upper_state(void) {
    uint32_t a, b, c, d;
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
    if (a < 0xd) {
        return;
    }
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(1), "c"(0));
    const bool osxsave = c & (1u << 27);
    if (!osxsave) {
        return;
    }
    __asm__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(0xd), "c"(1));
    const bool in_use_known = a & (1u << 2);
    if (!in_use_known) {
        return;
    }
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    upper_state = a & (STATE_YMM | STATE_ZMM);
    const uint32_t mxcsr = (uint32_t)(control_right & 0xffff);
    memcpy(initial_area.legacy + 24, &mxcsr, sizeof(mxcsr));  // SDM vol. 1, table 10-2
    // An emulator may take every component for used at all times: then the answer tells nothing.
    clear_uppers();
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    upper_state &= ~a;
}

#endif

// --- the call
// -----------------------------------------------------------------------------------------

bool abi_guard_call(abi_guard_fn *fn, const struct mha_kernel *kernel, const union mha_args *args,
                    void *memory, char *text, size_t size) {
    struct record record = {.smashed = 0};
    fault_report_thread();
    // Not taken from this thread as it is: an unguarded call may have changed it before.
    control_set(control_right);
#if defined(__x86_64__)
    record.ask_in_use = upper_state;
    clear_uppers();
#endif
    abi_guard_trampoline(&record, fn, kernel, args, memory);
    struct complaint c = {.size = size};
    c.text = text;
    look_at_control(&c);
    if (record.smashed > 0) {
        char damage[120];
        snprintf(damage, sizeof(damage),
                 "the stack above the kernel's frame was overwritten, at its end + %zu bytes",
                 sizeof(uint64_t) * (size_t)(record.smashed - 1));
        fault_report_abort(damage);
    }
    for (size_t i = 0; i < SAVED; i++) {
        if (record.seen[i] != PATTERN + 1 + i) {
            complain(&c, "changed the callee-saved register ", saved_names[i]);
        }
    }
#if defined(__x86_64__)
    enum { DIRECTION_FLAG = 1 << 10 };
    if (record.flags & DIRECTION_FLAG) {
        complain(&c, "left the direction flag set", "");
    }
    if (record.in_use & upper_state) {
        complain(&c, "left the upper halves of vector registers dirty (vzeroupper is missing)", "");
        clear_uppers();
    }
#endif
    return c.used == 0;
}

// --- the heap
// -----------------------------------------------------------------------------------------

enum { HEAP_BYTE = 0xa7 };

/// One watched size: a block before and one behind the place that malloc() hands out next.
static struct sentinel {
    size_t bytes;
    size_t usable[2];
    unsigned char *block[2];
    void *hole;  ///< Kept until a kernel may have it; NULL meanwhile.
} sentinels[] = {
    {.bytes = 24},  {.bytes = 40},  {.bytes = 72},   {.bytes = 136},
    {.bytes = 264}, {.bytes = 520}, {.bytes = 1032},
};

/// Gets three blocks side by side. What lies scattered, since it was used before, is left alone:
/// freed it would come again.
static void lay_out(struct sentinel *s) {
    enum { TRIES = 32, OVERHEAD_BYTES = 64 };
    for (int attempt = 0; attempt < TRIES; attempt++) {
        s->block[0] = malloc(s->bytes);
        s->hole = malloc(s->bytes);
        s->block[1] = malloc(s->bytes);
        const uintptr_t step = (uintptr_t)s->hole - (uintptr_t)s->block[0];
        if (step < s->bytes + OVERHEAD_BYTES &&
            (uintptr_t)s->block[1] - (uintptr_t)s->hole == step) {
            return;
        }
    }
}

void abi_guard_start(void) {
    control_right = control_get();
#if defined(__x86_64__)
    find_upper_state();
#endif
    for (size_t i = 0; i < sizeof(sentinels) / sizeof(sentinels[0]); i++) {
        struct sentinel *s = &sentinels[i];
        lay_out(s);
        for (size_t k = 0; k < 2; k++) {
            if (s->block[k]) {
                memset(s->block[k], HEAP_BYTE, s->bytes);
                s->usable[k] = malloc_usable_size(s->block[k]);
            }
        }
    }
}

void abi_guard_open_heap(void) {
    for (size_t i = 0; i < sizeof(sentinels) / sizeof(sentinels[0]); i++) {
        free(sentinels[i].hole);
        sentinels[i].hole = NULL;
    }
}

void abi_guard_check_heap(void) {
    for (size_t i = 0; i < sizeof(sentinels) / sizeof(sentinels[0]); i++) {
        struct sentinel *s = &sentinels[i];
        for (size_t k = 0; k < 2 && s->block[k]; k++) {
            bool intact = true;
            for (size_t b = 0; b < s->bytes; b++) {
                intact = intact && s->block[k][b] == HEAP_BYTE;
            }
            // The block's size stands before it, where an over-run of its neighbour hits first.
            // Last, since the library may crash over a wild one: which is an end too.
            intact = intact && malloc_usable_size(s->block[k]) == s->usable[k];
            if (!intact) {
                fault_report_abort("a block of the heap that is not the kernel's was overwritten");
            }
        }
        // What was freed last is handed out first. A kernel that kept it has it for good.
        if (!s->hole) {
            // NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): no watched size is 0
            s->hole = malloc(s->bytes);
        }
    }
}
