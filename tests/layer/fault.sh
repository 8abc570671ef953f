#!/bin/sh
# `mhabench check` of the whole layer with a planted fault in one step: FAILED or CRASHED, and the
# repeat line repeats it; the pipelines without the fault still pass.
# usage: fault.sh MHABENCH PLUGIN OP KERNEL REASON OPTION...
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2 op=$3 kernel=$4 reason=$5
shift 5

expect_wrong() {
    expect_status 1 "$1: the step of $op is wrong"
    grep -E -A1 '^(FAILED|CRASHED) *mha/f32/scalar_unfused/' "$scratch/out" >"$scratch/row" || {
        show out
        show err
        fail "$1: no row of the layer is wrong"
    }
    expect_text row "$reason"
}

# The emulator is a list of words.
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" check --kernel mha_f32_scalar_unfused --plugin "$plugin" "$@" --threads 1
expect_status 0 "without --with nothing is wrong"
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" check --kernel mha_f32_scalar_unfused --plugin "$plugin" "$@" --threads 1 \
    --with "$op=$kernel"
expect_wrong "the run"
repeat=$(sed -n 's|^ *repeat: \./mhabench ||p' "$scratch/out" | head -n 1)
[ -n "$repeat" ] || fail "no line tells how to repeat it"
eval "set -- $repeat"
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" "$@"
expect_wrong "the repeat line"
