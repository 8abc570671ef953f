#!/bin/sh
# kill -9 of the program: no worker is left behind, and --resume goes on.
# usage: kill.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/common_run.sh"

# Gone, or a zombie that whoever inherited it has not reaped.
worker_is_gone() {
    ! grep -q '^State:[[:space:]]*[^ZX]' "/proc/$worker/status"
}

# shellcheck disable=SC2086 # a list of words
start $endless
await 'a launch in the journal' journal_has launch 1
await 'a worker' has_worker
kill -KILL "$pid"
ended
[ "$status" = 137 ] || fail "exit code $status after SIGKILL, expected 137"
pid=
await 'the end of the worker' worker_is_gone
[ ! -e "$out" ] || fail 'a result without an end of the run'

done_so_far=$(grep -c '^{"event":"launch"' "$journal")
resume --launches $((done_so_far + 1)) --benchmark_min_time 0.002
expect_status 0 'resuming after SIGKILL'
[ "$(names "$out" | wc -l)" = 2 ] || fail 'two rows were expected'
expect_passed 2
[ "$(launches "$out")" = $((2 * (done_so_far + 1))) ] ||
    fail "$(launches "$out") launches in the file, expected 2 rows of $((done_so_far + 1))"
