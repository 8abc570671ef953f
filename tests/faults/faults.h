/// What the parts of the library of planted faults share.
#ifndef FAULTS_H
#define FAULTS_H

#include "mha_kernel.h"

/// The kernels of each part.
extern const struct mha_library_entry value_faults[], memory_faults[], conduct_faults[];
extern const struct mha_library_entry position_faults[], fused_faults[], narrow_faults[];
extern const struct mha_library_entry right_kernels[];
extern const size_t value_fault_count, memory_fault_count, conduct_fault_count;
extern const size_t position_fault_count, fused_fault_count, narrow_fault_count;
extern const size_t right_kernel_count;

/// An entry of kernel <op>_f32_<isa>_<tag>, whose function is <op>_<tag>; further members follow.
#define FAULT_ISA(op_, isa_, tag_, ...)                                      \
    {                                                                        \
        &(const struct mha_kernel){.name = #op_ "_f32_" #isa_ "_" #tag_,     \
                                   .op = #op_,                               \
                                   .dtype = "f32",                           \
                                   .isa = #isa_,                             \
                                   .tag = #tag_,                             \
                                   .summary = "for the tests of the tester", \
                                   .run = {.op_ = op_##_##tag_},             \
                                   __VA_ARGS__},                             \
            ""                                                               \
    }
#define FAULT(op_, tag_, ...) FAULT_ISA(op_, scalar, tag_, __VA_ARGS__)

// Right results, to go wrong from.
void softmax_right(const struct mha_softmax_args *args, void *workspace);
void qk_right(const struct mha_qk_args *args, void *workspace);
void pv_right(const struct mha_pv_args *args, void *workspace);
void qkv_proj_right(const struct mha_proj_args *args, void *workspace);
void out_proj_right(const struct mha_proj_args *args, void *workspace);
void concat_right(const struct mha_concat_args *args, void *workspace);
void split_right(const struct mha_split_args *args, void *workspace);

#endif
