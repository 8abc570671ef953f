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

# try EXPECTED-STATUS NAME CODE: an object of that name, with CODE in its run() and a fetch in its tile.
try() {
    printf '.type run, @function\nrun:\n%s\nret\n.size run, .-run\n' "$3" >"$scratch/code.s"
    printf '.type gemm_tile, @function\ngemm_tile:\nprefetcht0 (%%rdi)\nprefetcht1 (%%rdi)\nret\n' >>"$scratch/code.s"
    "$cc" -c -o "$scratch/$2.c.o" "$scratch/code.s"
    echo "kernel $scratch/$2.c.o" >"$scratch/list"
    run "$(dirname "$0")/prefetches.sh" "$objdump" "$scratch/list"
    expect_status "$1" "$2: $3"
}

try 0 pv_f32_avx512_6x64 'prefetcht0 (%rdi); prefetcht1 (%rdi)'
try 1 pv_f32_avx512_6x64 'prefetcht0 (%rdi)'
expect_text err 'pv_f32_avx512_6x64.c.o: no prefetcht1'
try 1 qk_f32_avx512_nt_6x64 'prefetcht1 (%rdi)'
try 1 sdpa_bf16_avx512bf16_dot_flash_6x64 'nop'
try 0 sdpa_f32_avx2_flash_3x32 'prefetcht0 (%rdi)'
try 1 qk_f16_avx2_widen_3x32 'prefetcht1 (%rdi)'
try 77 pv_f32_avx512_autovec 'nop'
try 77 qk_f32_avx512_libxsmm 'nop'
try 77 softmax_f32_avx512_t32c2_nt 'nop'
