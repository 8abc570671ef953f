#!/bin/sh
# Builds the fuzzers with clang.
# usage: build.sh CMAKE SOURCE BUILD
set -eu
. "$(dirname "$0")/../common.sh"
cmake=$1 source=$2 build=$3

command -v clang++ >/dev/null || skip 'clang is not installed; ./mhabench selftest as root installs it'
printf 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { return d == 0 && n != 0; }\n' \
    >"$scratch/probe.c"
run clang -fsanitize=fuzzer,address,undefined "$scratch/probe.c" -o "$scratch/probe"
[ "$status" = 0 ] || skip 'clang lacks its run-time libraries (Debian package libclang-rt-14-dev)'
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' >"$scratch/probe.c"
run clang -fopenmp "$scratch/probe.c" -o "$scratch/probe"
[ "$status" = 0 ] || skip 'clang lacks its OpenMP (Debian package libomp-dev)'

run "$cmake" -S "$source" -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo '-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -g' \
    '-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g' -DMHA_TESTS=ON -DMHA_CHECK_SIMDE=OFF -DMHA_FUZZ=ON \
    -DMHA_SANITIZE=address,undefined
expect_status 0 'configuring the fuzzers'
run "$cmake" --build "$build" --target fuzzers
expect_status 0 'building the fuzzers'
