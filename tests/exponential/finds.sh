#!/bin/sh
# Proves that the walk over the exponentials finds what is wrong with one.
# usage: finds.sh PROGRAM CC KERNELS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 cc=$2 kernels=$3
cd "$scratch"

# walk FLAW [OPTION...]: checks a kernel with that flaw. One key a row: run() has nothing to show.
walk() {
    run "$cc" -O2 -shared -fPIC -I "$kernels" "-DFLAW=$1" "$here/flawed_exp.c" -o flawed.so -lm
    expect_status 0 "building $1"
    flaw=$1
    shift
    run "$program" check --plugin ./flawed.so --kernel '*_flawed' --batch 1 --heads 1 --seq 1 --mask none "$@"
}
# found FLAW VERDICT TEXT
found() {
    walk "$1"
    expect_status 1 "$1"
    grep -q "^$2  *softmax_f32_scalar_flawed .* exp of " out || {
        show out
        fail "$1 is not $2"
    }
    expect_text out "$3"
    expect_text out 'repeat: ./mhabench check --kernel softmax_f32_scalar_flawed'
    # The run itself is right: the fault is the exponential's alone.
    grep -q '^PASSED  *softmax_f32_scalar_flawed .* problems' out || fail "$1: run() is right"
}

walk NONE
expect_status 0 'an exponential that is right'
grep -q '^PASSED  *softmax_f32_scalar_flawed .* exp of ' out || fail 'an exponential that is right'
found DRIFT FAILED 'allowed is an error of'
found BIG_FLUSH FAILED 'got 0;'
found MINUS_INF FAILED 'exp(-inf) at index'
found NOT_A_NUMBER FAILED 'exp(nan) at index'
found OVERRUN FAILED 'writes beside its results'
found UNWRITTEN FAILED 'is -1'
found CRASH CRASHED 'signal 6'

# One float in a thousand million: the sample may pass it by, every float does not.
walk ONE_FLOAT --exhaustive --json
expect_status 1 'one wrong float'
expect_text out 'exp(-0x1.234568p+3)'

# Nothing to walk is no success.
run "$program" check --exhaustive --op concat --batch 1 --heads 1 --seq 1
expect_status 2 '--exhaustive without an exponential'
expect_text err 'exp_f32'
