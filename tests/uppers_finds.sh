#!/bin/sh
# Proves that uppers.sh finds what it looks for: a right library passes, each wrong one fails.
# usage: uppers_finds.sh CC OBJDUMP FAULTS.so
set -eu
. "$(dirname "$0")/common.sh"
cc=$1 objdump=$2 faults=$3

case $("$cc" -dumpmachine) in
    x86_64*) ;;
    *) skip "the compiler is not one for x86-64" ;;
esac

run "$(dirname "$0")/uppers.sh" "$objdump" "$faults"
expect_status 1 'the library of planted faults'
expect_text err 'softmax_uppers of conduct.c'
[ "$(wc -l <"$scratch/err")" = 3 ] || {
    show err
    fail 'softmax_uppers alone is without vzeroupper'
}

# try EXPECTED-STATUS NAME ASSEMBLY: a library of that code.
try() {
    printf '%s\n' "$3" >"$scratch/$2.s"
    "$cc" -shared -nostdlib -o "$scratch/$2.so" "$scratch/$2.s"
    run "$(dirname "$0")/uppers.sh" "$objdump" "$scratch/$2.so"
    expect_status "$1" "$2"
}

# function_of NAME BODY: an exported function.
function_of() {
    printf '.globl %s\n.type %s, @function\n%s:\n%s\n.size %s, .-%s\n' "$1" "$1" "$1" "$2" "$1" "$1"
}
write='vaddps %ymm0, %ymm1, %ymm2'

try 0 clean "$(function_of f "$write; vzeroupper; ret")"
try 1 dirty "$(function_of f "$write; ret")"
try 1 dirty_zmm "$(function_of f 'vaddps %zmm0, %zmm1, %zmm2{%k1}; ret')"
try 0 no_halves "$(function_of f 'vaddps %xmm0, %xmm1, %xmm2; vaddps %zmm0, %zmm1, %zmm16; ret')"
try 0 only_read "$(function_of f 'vmovups %ymm0, (%rdi); vptestmd %zmm0, %zmm1, %k1; ret')"
try 1 one_path "$(function_of f "$write; test %edi, %edi; je 1f; vzeroupper; 1: ret")"
try 0 both_paths "$(function_of f "test %edi, %edi; je 1f; $write; vzeroupper; 1: ret")"
try 1 loop "$(function_of f "1: vzeroupper; $write; dec %edi; jne 1b; ret")"
try 1 written_again "$(function_of f "$write; vzeroupper; $write; ret")"
try 1 table "$(function_of f "$write; jmp *%rax; vzeroupper; ret; ret")"

# A function that is called is a part of its callers, whose address is held is one for the outside.
helper=$(printf '.type helper, @function\nhelper: %s; ret\n.size helper, .-helper' "$write")
try 0 called "$helper
$(function_of f 'call helper; vzeroupper; ret')"
try 1 called_last "$helper
$(function_of f 'vzeroupper; call helper; ret')"
try 1 tail "$helper
$(function_of f 'vzeroupper; jmp helper')"
try 1 tail_out "$(function_of f "$write; jmp memcpy@plt")"
try 0 tail_out_clean "$(function_of f "$write; vzeroupper; jmp memcpy@plt")"
try 1 held "$helper
$(function_of f 'call helper; vzeroupper; ret')
.data
.quad helper"
