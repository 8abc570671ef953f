#!/bin/sh
# Proves that streams.sh finds what it looks for.
# usage: streams_finds.sh CC OBJDUMP
set -eu
. "$(dirname "$0")/common.sh"
cc=$1 objdump=$2

case $("$cc" -dumpmachine) in
    x86_64*) ;;
    *) skip "the compiler is not one for x86-64" ;;
esac

# try EXPECTED-STATUS NAME CODE: an object of that name with this code.
try() {
    printf 'run:\n%s\nret\n' "$3" >"$scratch/code.s"
    "$cc" -c -o "$scratch/$2.c.o" "$scratch/code.s"
    echo "kernel $scratch/$2.c.o" >"$scratch/list"
    run "$(dirname "$0")/streams.sh" "$objdump" "$scratch/list"
    expect_status "$1" "$2: $3"
}

store='vmovntps %ymm0, (%rdi)'
try 0 concat_f32_avx2_nt "$store; sfence"
try 0 pv_bf16_avx512bf16_nt_dot_6x64 "vmovntps %zmm0, (%rdi); sfence"
try 1 pv_f32_avx512_nt_6x64 "$store"
expect_text err 'pv_f32_avx512_nt_6x64.c.o: its streaming stores are not fenced'
try 1 sdpa_f32_avx512_nt_flash_6x64 'vmovups %zmm0, (%rdi); sfence'
expect_text err 'no streaming store is left'
try 0 pv_f32_avx512_6x64 nop
try 1 pv_f32_avx512_6x64 "$store; sfence"
expect_text err 'pv_f32_avx512_6x64.c.o: streams, and is not named nt'
try 77 pv_f32_avx512_autovec "$store"
try 77 concat_f32_neon_nt nop
