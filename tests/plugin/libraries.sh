#!/bin/sh
# Kernels over well-known libraries, as a user would plug them in: they must pass, and get a time.
# usage: libraries.sh PROGRAM CC KERNELS (softmax_sleef|qk_cblas) CFLAGS...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 cc=$2 kernels=$3 name=$4
shift 4
op=${name%%_*}
case $name in
    softmax_sleef) header=sleef.h library=sleef package=libsleef-dev ;;
    qk_cblas) header=cblas.h library=openblas package=libopenblas-dev ;;
esac
cd "$scratch"

printf '#include <%s>\nint main(void) { return 0; }\n' "$header" >probe.c
# shellcheck disable=SC2086 # words
"$cc" probe.c -o probe -l$library 2>probe.log || skip "$package is not installed"
run "$cc" -O3 "$@" -shared -fPIC -Wall -Wextra -I "$kernels" "$here/$name.c" -o "$name.so" -l$library
expect_status 0 "building $name"

run "$program" check --plugin "./$name.so" --kernel '*_plugged' --batch 1 --heads 2 --seq 1,17,65
[ "$status" != 77 ] || skip 'this CPU has no AVX2'
expect_status 0 "check of $name"
grep -q "^PASSED  *${op}_f32_avx2_.*_plugged " out || fail "$name is not PASSED"
# SLEEF promises 1 ULP; the float by float check of its exponential is held to that here.
if [ $op = softmax ]; then
    ulp=$(sed -n 's/^PASSED .*_plugged .* floats  max \([0-9.]*\) ulp.*/\1/p' out)
    [ -n "$ulp" ] || fail 'the exponential was not walked'
    awk "BEGIN { exit !($ulp > 0.5 && $ulp <= 1.0) }" || fail "SLEEF's expf: $ulp ULP"
fi

run "$program" run --plugin "./$name.so" --op $op --kernel '*_plugged,*_scalar_*' --batch 1 --heads 2 --head-dim 64 \
    --seq 64 --mask none --threads 1 --launches 1 --benchmark_min_time 0.001 --out result.json
expect_status 0 "run of $name"
tr -d ' \n' <result.json | sed 's/{"name":/\n&/g' | grep '_plugged"' | grep -q '"median_ns":[0-9]' ||
    fail "$name has no time"
