/// What the calling convention asks of a kernel beyond its result. A broken convention shows
/// elsewhere and later (in the harness, in a caller's arithmetic), so every call of a kernel that
/// is checked goes through here; timed calls do not.
///
/// Looked at after each call:
///   - callee-saved registers: rbx rbp r12-r15; on AArch64 x19-x28 and the lower halves of v8-v15;
///   - the direction flag; control bits of MXCSR and of the x87 unit; FPCR (not the sticky status
///     bits, which any arithmetic sets);
///   - upper halves of the vector registers, which a kernel with AVX clears before it returns
///     (vzeroupper): otherwise its caller's SSE code is slowed down. Told by XGETBV(1), where the
///     CPU has it;
///   - 1 KiB of stack above the kernel's frame. Damage beyond that, or of the return address, ends
///     in a signal;
///   - blocks of the heap beside those that malloc() would hand out next. What a kernel overwrites
///     elsewhere in the heap is found when the C library or the harness stumbles over it, or never.
#ifndef MHA_ABI_GUARD_H
#define MHA_ABI_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "op.h"

/// A function of a driver that calls into a kernel: run or pack.
typedef void abi_guard_fn(const struct mha_kernel *kernel, const union mha_args *args,
                          void *memory);

/// Takes the calling thread's control bits as those that hold in every guarded call, and lays out
/// the blocks of the heap. Once, before any kernel runs.
void abi_guard_start(void);

/// Calls fn(kernel, args, memory). Returns true when the kernel kept to the convention; else `text`
/// says what it broke, and all of it is mended. A damaged stack is not: that aborts the process,
/// with a fault event.
bool abi_guard_call(abi_guard_fn *fn, const struct mha_kernel *kernel, const union mha_args *args,
                    void *memory, char *text, size_t size);

/// Tells whether this thread's control bits are as they should be; mends them. For calls that were
/// not guarded.
bool abi_guard_control_kept(char *text, size_t size);

/// Makes room between the watched blocks of the heap, where this thread's malloc() looks first: to
/// be called right before a kernel is.
void abi_guard_open_heap(void);

/// Looks at the blocks of the heap. Damage aborts the process, with a fault event.
void abi_guard_check_heap(void);

#endif
