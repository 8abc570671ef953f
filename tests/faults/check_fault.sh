#!/bin/sh
# `mhabench check` on one planted fault: the verdict, its reason, the exit code, the repeat line, and
# that a right kernel of the same run still passes.
# usage: check_fault.sh MHABENCH PLUGIN KERNEL VERDICT REASON OPTION...
#
# PASSED as the verdict: a kernel that must not be accused. Else one word, or several with | between.
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2 kernel=$3 verdict=$4 reason=$5
shift 5

# Op and dtype.
right=$(printf '%s' "$kernel" | sed 's/\(_b\{0,1\}f[0-9]*\)_.*/\1/')_scalar_right
op=$(printf '%s' "$right" | sed 's/_b\{0,1\}f[0-9]*_scalar_right$//')
# The emulator is a list of words.
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" check --plugin "$plugin" --kernel "$kernel,$right" --op "$op" "$@"
case $(cat "$scratch/err") in
    *'cannot run here'*) skip "this CPU lacks the instructions of $kernel" ;;
esac

# The first row of this verdict and the line below it, which is the reason.
expect_row() {
    grep -E -A1 "^($verdict) *$op/" "$scratch/out" >"$scratch/row" || {
        show out
        show err
        fail "$1: no row says $verdict"
    }
    grep -qF -- "$reason" "$scratch/row" || {
        show row
        fail "$1: no reason says: $reason"
    }
}

expect_text out "PASSED      $right"
if [ "$verdict" = PASSED ]; then
    expect_status 0 "nothing is wrong with $kernel"
    expect_text out "PASSED      $kernel"
    exit 0
fi
expect_status 1 "a kernel is wrong"
expect_row "the run"

repeat=$(sed -n 's|^ *repeat: \./mhabench ||p' "$scratch/out" | head -n 1)
[ -n "$repeat" ] || fail "no line tells how to repeat it"
eval "set -- $repeat"
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" "$@"
expect_status 1 "the repeat line repeats it"
expect_row "the repeat line"
