#!/bin/sh
# Proves that symbols.sh finds what it looks for: a right object passes, each wrong one fails.
# usage: symbols_finds.sh CC SYMBOLS.SH NM OBJDUMP
set -eu
. "$(dirname "$0")/common.sh"
cc=$1
tool=$2 nm=$3 objdump=$4

# try EXPECTED-STATUS KIND NAME SOURCE
try() {
    printf '%s\n' "$4" >"$scratch/$3.c"
    "$cc" -fPIC -c "$scratch/$3.c" -o "$scratch/$3.c.o"
    file=$scratch/$3.c.o
    if [ "$2" = library ]; then
        file=$scratch/lib$3.so
        "$cc" -shared -o "$file" "$scratch/$3.c.o"
    fi
    printf '%s %s\n' "$2" "$file" >"$scratch/list"
    run "$tool" "$nm" "$objdump" "$scratch/list"
    expect_status "$1" "$2: $4"
}
try 0 kernel good 'const int good = 1;'
try 1 kernel leaky 'const int leaky = 1; int helper(void) { return 0; }'
try 1 kernel hiding 'const int hiding = 1; __attribute__((visibility("hidden"))) int helper(void) { return 0; }'
try 1 kernel renamed 'const int another = 1;'
try 1 kernel empty 'static int nothing; int *const unrelated = &nothing;'
try 0 library plain 'int mha_kernel_library(void) { return 0; }'
try 1 library leaking 'int mha_kernel_library(void) { return 0; } int more;'
try 0 baseline sse 'int f(void) { return 1; }'
case $("$cc" -dumpmachine) in
    x86_64*)
        try 1 baseline ymm 'void f(void) { __asm__("vaddps %ymm1, %ymm2, %ymm3"); }'
        try 1 baseline xmm 'void f(void) { __asm__("vfmadd213ps %xmm1, %xmm2, %xmm3"); }'
        try 1 baseline zmm 'void f(void) { __asm__("vaddps %zmm1, %zmm2, %zmm3"); }'
        ;;
esac
