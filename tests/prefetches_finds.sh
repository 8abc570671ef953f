#!/bin/sh
# Proves that prefetches.sh finds what it looks for.
# usage: prefetches_finds.sh CC OBJDUMP
set -eu
. "$(dirname "$0")/common.sh"
cc=$1 objdump=$2

case $("$cc" -dumpmachine) in
    x86_64*) ;;
    *) skip "the compiler is not one for x86-64" ;;
esac

# try EXPECTED-STATUS NAME RUN DOTS AXPYS [TILE]: an object of that name, with this code in its run(), dots_4(),
# axpys_4() and tile, which fetches unless told otherwise.
try() {
    {
        code run "$3"
        code dots_4 "$4"
        code axpys_4 "$5"
        code gemm_tile "${6:-prefetcht0 (%rdi); prefetcht1 (%rdi)}"
    } >"$scratch/code.s"
    "$cc" -c -o "$scratch/$2.c.o" "$scratch/code.s"
    echo "kernel $scratch/$2.c.o" >"$scratch/list"
    run "$(dirname "$0")/prefetches.sh" "$objdump" "$scratch/list"
    expect_status "$1" "$2: $3 | $4 | $5"
}

# code NAME CODE: the assembly of it.
code() {
    printf '.type %s, @function\n%s:\n%s\nret\n.size %s, .-%s\n' "$1" "$1" "$2" "$1" "$1"
}

near='prefetcht0 (%rdi)' far='prefetcht1 (%rdi)'
try 0 pv_f32_avx512_6x64 "$far" nop "$near"
try 1 pv_f32_avx512_6x64 "$near; $far" nop "$near" "$near"
expect_text err 'pv_f32_avx512_6x64.c.o: no tile-prefetcht1'
try 1 pv_f32_avx512_6x64 "$far" "$near" "$far"
expect_text err 'pv_f32_avx512_6x64.c.o: no axpys-prefetcht0'
try 0 pv_bf16_avx2_widen_3x32 "$far" nop "$near" nop
try 0 pv_f32_avx2_3x32 "$far" nop "$near" "$near"
try 1 pv_bf16_avx512bf16_dot_6x64 "$far" nop "$near" nop
expect_text err 'no tile-prefetcht1'
try 1 qk_f32_avx512_nt_6x64 "$far; $near" "$far" nop
expect_text err 'no dots-prefetcht0'
try 0 qk_f32_avx512_nt_6x64 "$far; $near" "$near" nop
try 1 qk_f32_avx512_nt_6x64 "$far" "$near" nop
expect_text err 'no other-prefetcht0'
try 77 out_proj_f32_avx512_6x64 nop nop nop
try 77 out_proj_f32_avx2_autovec nop nop nop
try 1 qk_f32_avx2_3x32 "$far" "$near" nop
expect_text err 'no dots-prefetcht1'
try 1 qk_f16_avx2_widen_3x32 "$near" "$near" nop
try 1 sdpa_bf16_avx512bf16_dot_flash_6x64 nop nop nop
try 1 sdpa_f32_avx512_flash_6x64 "$far" nop "$near"
try 1 sdpa_f32_avx512_flash_6x64 "$far" "$far" "$near"
expect_text err 'no dots-prefetcht0'
try 0 sdpa_f32_avx2_flash_3x32 "$far" "$near" "$near"
try 77 pv_f32_avx512_autovec nop nop nop
try 77 qk_f32_avx512_libxsmm nop nop nop
try 0 softmax_f32_avx512_t32c2_nt "$near; $far" nop nop
try 1 softmax_f32_avx2_t8c3_nt "$near" nop nop
expect_text err 'softmax_f32_avx2_t8c3_nt.c.o: no other-prefetcht1'
try 1 rope_f32_avx512_nt "$far" nop nop
expect_text err 'no other-prefetcht0'
try 1 concat_f32_avx2_nt "$near" nop nop
try 1 split_f32_avx512_nt "$far" nop nop
try 1 copy_f32_avx2_nt nop nop nop
try 77 softmax_f32_avx512_t32c2_u64a4 nop nop nop
try 77 rope_f32_avx2_u4 nop nop nop
