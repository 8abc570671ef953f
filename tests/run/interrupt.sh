#!/bin/sh
# Ctrl-C in mid run leaves a result and a journal; --resume goes on, with the same rows and no launch lost
# or counted twice. A torn last line, as a full disk leaves it, does no harm; another selection is refused.
# usage: interrupt.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
. "$(dirname "$0")/common_run.sh"

# shellcheck disable=SC2086 # a list of words
start $endless
await 'two launches in the journal' journal_has launch 2
kill -INT "$pid"
ended
[ "$status" = 130 ] || {
    show err
    fail "exit code $status after SIGINT, expected 130"
}
[ -s "$out" ] || fail 'no result after SIGINT'
[ -s "$journal" ] || fail 'no journal after SIGINT'
names "$out" >"$scratch/names"
[ "$(wc -l <"$scratch/names")" = 2 ] || fail 'two rows were expected'

# Another selection must not be mixed in; the journal stays as it is.
cp "$journal" "$scratch/kept"
run "$program" run --kernel softmax_f32_scalar_libm --op softmax --heads 3 --seq 16 --out "$out" --resume
expect_status 2 'a journal of another selection'
expect_text err 'another selection'
cmp -s "$journal" "$scratch/kept" || fail 'a refused journal was written to'

# A torn line stays alone: what comes behind it is whole.
printf '{"event":"samp' >>"$journal"
before=$(grep -c '^{"event":"launch"' "$journal")
# shellcheck disable=SC2086 # a list of words
start $endless --resume
await 'a launch after the torn line' journal_has launch $((before + 1))
kill -INT "$pid"
ended
[ "$status" = 130 ] || fail "exit code $status after the second SIGINT, expected 130"
grep -qxF '{"event":"samp' "$journal" || fail 'the torn line is not a line of its own'

# To the end: one more launch than the journal has.
done_so_far=$(grep -c '^{"event":"launch"' "$journal")
resume --launches $((done_so_far + 1)) --benchmark_min_time 0.002
expect_status 0 'resuming'
names "$out" | cmp -s - "$scratch/names" || fail 'other rows after resuming'
expect_passed 2
[ "$(launches "$out")" = $((2 * (done_so_far + 1))) ] ||
    fail "$(launches "$out") launches in the file, expected 2 rows of $((done_so_far + 1))"
[ ! -e "$journal" ] || fail 'the journal of a finished run is still there'

# Nothing to go on with.
resume --launches 1
expect_status 2 'resuming without a journal'
