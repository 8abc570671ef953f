/// Faults of memory: reads and writes where a kernel has no business.
#include <stdlib.h>
#include <string.h>

#include "faults.h"

/// Reads a float and does nothing with it.
static void peek(const float *at) {
    (void)*(const volatile float *)at;
}

static void poke(float *at) {
    *(volatile float *)at = 0.25f;
}

static void softmax_reads_behind(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    peek((const float *)args->x + (args->rows - 1) * args->x_stride + args->cols);
}

static void softmax_reads_before(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    peek((const float *)args->x - 1);
}

static void softmax_writes_behind(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    poke(args->y + (args->rows - 1) * args->y_stride + args->cols);
}

static void softmax_writes_before(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    poke(args->y - 1);
}

/// Writes behind every row but the last, where rows have a gap.
static void softmax_writes_gap(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    for (size_t r = 0; r + 1 < args->rows && args->y_stride > args->cols; r++) {
        poke(args->y + r * args->y_stride + args->cols);
    }
}

/// Adds what stands behind a row, times zero.
static void softmax_adds_gap(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    for (size_t r = 0; r + 1 < args->rows && args->x_stride > args->cols; r++) {
        const float *x = (const float *)args->x + r * args->x_stride;
        args->y[r * args->y_stride] += x[args->cols] * 0.0f;
    }
}

static void softmax_writes_input(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    poke((float *)(size_t)args->x);
}

static void qk_reads_behind_k(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    peek((const float *)args->k + (args->seq_kv - 1) * args->k_stride + args->head_dim);
}

static void qk_reads_before_q(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    peek((const float *)args->q - 1);
}

static void concat_writes_behind(const struct mha_concat_args *args, void *memory) {
    concat_right(args, memory);
    poke((float *)args->y + (args->tokens - 1) * args->y_stride + args->heads * args->head_dim);
}

static void split_writes_gap(const struct mha_split_args *args, void *memory) {
    split_right(args, memory);
    for (size_t t = 0; t + 1 < args->tokens && args->y_stride > args->head_dim; t++) {
        poke((float *)args->y + t * args->y_stride + args->head_dim);
    }
}

static size_t odd_bytes(const struct mha_shape *shape) {
    (void)shape;
    return 100;  // ends inside a cache line
}

static void qk_workspace_behind(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    memset(memory, 0, 104);
}

static void qk_workspace_before(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    poke((float *)memory - 1);
}

static void qk_workspace_far(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
    poke((float *)memory + 32);
}

static void pack_over(const struct mha_qk_args *args, void *packed) {
    (void)args;
    memset(packed, 0, 104);
}

static void qk_packed_behind(const struct mha_qk_args *args, void *memory) {
    qk_right(args, memory);
}

/// Writes to what all items of a head share.
static void qk_null(const struct mha_qk_args *args, void *memory) {
    (void)memory;
    const float *volatile nothing = NULL;
    args->s[0] = nothing[1];
}

/// Spoils the row behind its own, unless it is the sequence's last: the item that owns the row
/// usually comes later and puts it right.
static void softmax_next_row(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    if (args->first_row + args->rows < args->mask.seq_q) {
        poke(args->y + args->rows * args->y_stride);
    }
}

/// The row before its own.
static void softmax_last_row(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    if (args->first_row > 0) {
        poke(args->y - args->y_stride);
    }
}

/// Writes over what lies above its frame.
__attribute__((noinline)) static void softmax_stack(const struct mha_softmax_args *args,
                                                    void *memory) {
    softmax_right(args, memory);
    size_t *frame = __builtin_frame_address(0);
    __asm__(""
            : "+r"(frame));  // lest the compiler sees through it; in a register, out of harm's way
    for (size_t i = 2; i < 66; i++) {  // past the return address
        frame[i] = 0x4141414141414141u;
    }
}

/// As much of it that the way back is lost.
__attribute__((noinline)) static void softmax_stack_all(const struct mha_softmax_args *args,
                                                        void *memory) {
    softmax_right(args, memory);
    size_t *frame = __builtin_frame_address(0);
    __asm__(""
            : "+r"(frame));  // lest the compiler sees through it; in a register, out of harm's way
    for (size_t i = 0; i < 66; i++) {
        frame[i] = 0x4141414141414141u;
    }
}

static void softmax_recurses(const struct mha_softmax_args *args, void *memory) {
    volatile char use[4096];
    use[0] = 1;
    void (*volatile again)(const struct mha_softmax_args *, void *) = softmax_recurses;
    again(args, memory);
    use[1] = use[0];
}

/// Allocates a buffer, and writes more than it holds.
static void softmax_heap(const struct mha_softmax_args *args, void *memory) {
    softmax_right(args, memory);
    static char *volatile buffer;
    if (!buffer) {
        buffer = malloc(520);
    }
    const volatile size_t more = 560;
    if (buffer) {
        memset(buffer, 1, more);
    }
}

const struct mha_library_entry memory_faults[] = {
    FAULT(softmax, reads_behind, .flags = 0),
    FAULT(softmax, reads_before, .flags = 0),
    FAULT(softmax, writes_behind, .flags = 0),
    FAULT(softmax, writes_before, .flags = 0),
    FAULT(softmax, writes_gap, .flags = 0),
    FAULT(softmax, adds_gap, .flags = 0),
    FAULT(softmax, writes_input, .flags = 0),
    FAULT(qk, reads_behind_k, .flags = 0),
    FAULT(qk, reads_before_q, .flags = 0),
    FAULT(concat, writes_behind, .flags = 0),
    FAULT(split, writes_gap, .flags = 0),
    FAULT(qk, workspace_behind, .workspace_bytes = odd_bytes),
    FAULT(qk, workspace_before, .workspace_bytes = odd_bytes),
    FAULT(qk, workspace_far, .workspace_bytes = odd_bytes),
    FAULT(qk, packed_behind, .pack = {.qk = pack_over}, .packed_bytes = odd_bytes),
    FAULT(qk, null, .flags = 0),
    FAULT(softmax, next_row, .flags = 0),
    FAULT(softmax, last_row, .flags = 0),
    FAULT(softmax, stack, .flags = 0),
    FAULT(softmax, stack_all, .flags = 0),
    FAULT(softmax, recurses, .flags = 0),
    FAULT(softmax, heap, .flags = 0),
};
const size_t memory_fault_count = sizeof(memory_faults) / sizeof(memory_faults[0]);
