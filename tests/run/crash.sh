#!/bin/sh
# A worker that dies of a signal costs the row that it was busy with; the rest is measured.
# usage: crash.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/common_run.sh"

start --launches 1 --benchmark_min_time 0.2
await 'a verdict in the journal' journal_has verdict 1
await 'a worker' has_worker
kill -SEGV "$worker"
ended
[ "$status" = 1 ] || {
    show err
    fail "exit code $status after the worker's crash, expected 1"
}
[ "$(names "$out" | wc -l)" = 2 ] || fail 'two rows were expected'
[ "$(grep -c '"verdict": "CRASHED"' "$out")" = 1 ] || fail 'one row should have CRASHED'
expect_passed 1
# The crashed row says how to repeat it, and has no time.
sed -n '/"verdict": "CRASHED"/,/"repro"/p' "$out" >"$scratch/row"
grep -q '"repro": "./mhabench [a-z]* --kernel ' "$scratch/row" || fail 'no repro line in the crashed row'
grep -q '"median_ns": null' "$scratch/row" || fail 'the crashed row has a time'
