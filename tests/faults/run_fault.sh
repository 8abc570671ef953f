#!/bin/sh
# `mhabench run` on one planted fault: no time is recorded, the reason says why, the exit code is 1,
# and a right kernel of the same run is timed.
# usage: run_fault.sh MHABENCH PLUGIN KERNEL REASON
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2 kernel=$3 reason=$4

# Samples of 5 ms hold hundreds of calls of this size, even on a busy machine.
set -- --launches 1 --budget 1 --timeout 1 --benchmark_min_time=0.005
run "$program" run --plugin "$plugin" --kernel "$kernel,softmax_f32_scalar_right" --op softmax --batch 1 \
    --heads 1 --head-dim 16 --seq 9 --mask none --threads 1 --out "$scratch/result.json" "$@"
expect_status 1 "a kernel is wrong"
expect_text err "$reason"

# A row of the result file, from its name to the next one's.
row_of() {
    sed -n "/\"kernel\": \"$1\"/,/\"name\":/p" "$scratch/result.json" >"$scratch/row"
}
row_of "$kernel"
expect_text row "$reason"
expect_text row '"median_ns": null'
row_of softmax_f32_scalar_right
expect_text row '"verdict": "PASSED"'
expect_no_text row '"median_ns": null'

# As printed, but for where the result goes and how long it takes.
repeat=$(sed -n 's|.*\./mhabench \(run .*\)|\1|p' "$scratch/out" "$scratch/err" | head -n 1)
[ -n "$repeat" ] || {
    show out
    show err
    fail "no line tells how to repeat it"
}
eval "set -- $repeat $*"
run "$program" "$@" --out "$scratch/again.json"
expect_status 1 "the repeat line repeats it"
expect_text err "$reason"
