#!/bin/sh
# A kernel that does nothing once its output is right is faster than its CPU: no error that a comparison
# of outputs can see. It is measured again, it alone, before it is called ACCOUNTING; its numbers stay
# in the file as evidence.
# usage: share_fault.sh MHABENCH PLUGIN
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2

run "$program" run --plugin "$plugin" --kernel 'softmax_f32_scalar_right,softmax_f32_scalar_remembers' \
    --op softmax --batch 1 --heads 2 --head-dim 16 --seq 300 --mask none --threads 1 --launches 2 --budget 1000 \
    --benchmark_min_time=0.002 --out "$scratch/result.json"
expect_status 1 "a share lies above its ceiling"
expect_text err "a share lies above its ceiling: such rows are measured again"
expect_text out "of the fma ceiling, above 1.05 in every launch"
expect_text out "2 cases: 1 PASSED, 1 ACCOUNTING"

# launches_of KERNEL: how many launches' samples its row has.
launches_of() {
    sed -n "/\"kernel\": \"$1\"/,/\"name\":/p" "$scratch/result.json" |
        sed -n '/"samples_ns": \[/,/\]$/p' | grep -c '^ *\[[0-9]'
}
right=$(launches_of softmax_f32_scalar_right)
remembers=$(launches_of softmax_f32_scalar_remembers)
[ "$right" -eq 2 ] || fail "the right kernel was timed in $right launches in place of 2"
[ "$remembers" -eq 5 ] || fail "the wrong one was timed in $remembers launches in place of 2 and 3 more"
