#!/bin/sh
# The README's plug-in: built as it stands there, as C and as C++, checked and measured; and with a
# bug, which must not pass.
# usage: example.sh PROGRAM CC CXX KERNELS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 cc=$2 cxx=$3 kernels=$4
cd "$scratch"

# build COMMAND...: makes my_softmax.so, without a warning. The members that a descriptor leaves out
# are what -Wextra would complain of in C++.
build() {
    rm -f my_softmax.so
    run "$@" -O3 -shared -fPIC -Wall -Wextra -Wno-missing-field-initializers -Werror -I "$kernels" \
        "$source" -o my_softmax.so -lm
    expect_status 0 "$*"
}

check() {
    run "$program" check --plugin ./my_softmax.so --kernel '*_mine' --batch 1 --heads 2 --kv-heads 2 --head-dim 16 --seq 1,17
}

source=$here/my_softmax.c
for how in "$cc" "$cc -std=c11 -pedantic" "$cxx -x c++ -std=c++20 -pedantic" "$cxx -x c++ -std=c++17"; do
    # shellcheck disable=SC2086 # words
    build $how
    check
    expect_status 0 "check after $how"
    grep -q '^PASSED  *softmax_f32_scalar_mine ' out || fail "$how: not PASSED"

    # shellcheck disable=SC2086 # words
    build $how -DBUG
    check
    expect_status 1 "check of a bug, after $how"
    grep -q '^FAILED  *softmax/f32/scalar_mine' out || fail "$how: the bug is not FAILED"
    expect_text out 'repeat: ./mhabench check --kernel softmax_f32_scalar_mine'
    expect_text out '--plugin ./my_softmax.so'
done

# A kernel with a bug gets no time, beside others that do.
measure() {
    run "$program" run --plugin ./my_softmax.so --op softmax --kernel '*_mine,*_libm' --batch 1 --heads 2 --head-dim 64 --seq 64 --mask none \
        --threads 1 --launches 1 --benchmark_min_time 0.001 --out "$1"
}
# median FILE: the time of our kernel in a result file, or null.
median() {
    tr -d ' \n' <"$1" | sed 's/{"name":/\n&/g' | sed -n 's/.*"softmax_f32_scalar_mine".*"median_ns":\([^,}]*\).*/\1/p'
}
measure wrong.json
expect_status 1 'run of a bug'
[ "$(median wrong.json)" = null ] || fail "a kernel with a bug has a time: $(median wrong.json)"
# shellcheck disable=SC2086 # words
build $cc
measure right.json
expect_status 0 'run of the example'
case $(median right.json) in
    [0-9]*) ;;
    *) fail "the example has no time: $(median right.json)" ;;
esac
run "$program" list --plugin ./my_softmax.so --kernel '*_mine'
expect_status 0 'list'
expect_text out 'my first kernel [./my_softmax.so 1.0]'
