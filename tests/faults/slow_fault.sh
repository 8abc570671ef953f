#!/bin/sh
# A kernel that does its work three times is slower than its twin, measured side by side.
# usage: slow_fault.sh MHABENCH PLUGIN
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2

run "$program" run --plugin "$plugin" --kernel 'softmax_f32_scalar_right,softmax_f32_scalar_slow' --op softmax \
    --batch 1 --heads 1 --head-dim 16 --seq 33 --mask none --threads 1 --launches 1 --budget 2 \
    --benchmark_min_time=0.005 --out "$scratch/result.json"
expect_status 0 "both are right"

# The minimum: of two kernels on a busy machine it is what compares.
minimum_of() {
    sed -n "/\"kernel\": \"$1\"/,/\"name\":/p" "$scratch/result.json" |
        sed -n 's/.*"min_ns": \([0-9.e+-]*\).*/\1/p' | head -n 1
}
right=$(minimum_of softmax_f32_scalar_right)
slow=$(minimum_of softmax_f32_scalar_slow)
if [ -z "$right" ] || [ -z "$slow" ]; then
    show err
    fail "a time is missing"
fi
echo "right: $right ns, slow: $slow ns"
# About three times, far from once.
awk "BEGIN { exit !($slow > 1.5 * $right) }" || fail "$slow is not more than $right"
