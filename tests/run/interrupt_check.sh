#!/bin/sh
# Ctrl-C in the middle of a check: what was not tried is UNTESTED and no fault of the kernel, and the program ends by
# the signal.
# usage: interrupt_check.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/common_run.sh"

# All shapes of a scalar product: many seconds, whatever the machine.
"$program" check --kernel qk_f32_scalar_dot --op qk >"$scratch/out" 2>"$scratch/err" </dev/null &
pid=$!
await 'its handler' catches_interrupt
await 'a worker' has_worker
kill -INT "$pid"
ended
[ "$status" = 130 ] || {
    show err
    fail "exit code $status after SIGINT, expected 130"
}
expect_text out 'UNTESTED    qk_f32_scalar_dot'
expect_no_text out 'WRONG'
