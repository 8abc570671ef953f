#!/bin/sh
# The command from outside: what it prints, its exit codes, files that cannot be written.
# usage: history.sh PROGRAM TEST_HISTORY
set -eu
# shellcheck source=tests/common.sh
. "$(dirname "$0")/../common.sh"

program=$1
db=$scratch/history.db
results=$scratch/results
case='softmax/f32/scalar_libm/batch:1/heads:12/head_dim:64/seq_q:1/seq_kv:128/threads:1'
mkdir "$results"
"$2" make "$results"
passed=$(find "$results" -name 'commit-[0-3]*' | sort)

history() {
    run "$program" history "$@"
}

# --- a quiet series
# shellcheck disable=SC2046,SC2086 # a list of files
history add --db "$db" $(printf '%s\n' $passed | head -25)
expect_status 0 'add'
expect_text err '25 results added'
expect_empty out
# shellcheck disable=SC2046,SC2086
history add --db "$db" $(printf '%s\n' $passed | head -25)
expect_status 0 'the same again'
expect_text err '0 results added'
history check --db "$db"
expect_status 0 'no step'
expect_text out 'steps: 0'
expect_text out 'Hawkins'

# --- a step
# shellcheck disable=SC2086
history add --db "$db" $passed
expect_status 0 'the rest'
expect_text err '15 results added'
history check --db "$db"
expect_status 1 'a step up'
expect_text out 'SLOWER +10'
expect_text out 'between 000000001018 and 000000001019'
expect_text out "history ack --db '$db' --case '$case' --commit '000000001019'"
for form in json markdown junit github-action-benchmark; do
    history check --db "$db" "--$form"
    expect_status 1 "--$form"
    expect_text out 'softmax/f32/scalar'
done
history check --db "$db" --json --out "$scratch/check.json"
expect_status 1 'check --out'
expect_empty out
grep -q '"first_after": "000000001019"' "$scratch/check.json" || fail 'check.json'

# --- show: without a terminal in ASCII, whatever the locale
LC_ALL=C.UTF-8 history show --db "$db" --case '*seq_q:1/*' --last 30
expect_status 0 'show'
expect_text out "$case"
expect_text out '1.100 us'
[ "$(grep -c PASSED "$scratch/out")" = 30 ] || fail '--last 30'
! LC_ALL=C grep -q '[^ -~]' "$scratch/out" || fail 'show is not ASCII'
# A terminal of one's own, where the system gives one (a bare chroot has no /dev/pts).
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    LC_ALL=C.UTF-8 script -qec "'$program' history show --db '$db' --color never" /dev/null >"$scratch/out" </dev/null
    expect_text out '█'
    LC_ALL=C script -qec "'$program' history show --db '$db' --color never" /dev/null >"$scratch/out" </dev/null
    expect_no_text out '█'
fi
history show --db "$db" --json
expect_status 0 'show --json'
expect_text out '"commit": "000000001027"'
expect_no_text out '"commit": "000000001001"'

# --- export
history export --db "$db" --format csv
expect_status 0 'export csv'
[ "$(wc -l <"$scratch/out")" = 41 ] || fail 'export has a line per result and a head'
expect_text out 'case,machine,fingerprint,started,commit,compiler,verdict,median_ns'
expect_text out "$case,Made-up CPU,"
history export --db "$db" --out "$scratch/export.json"
expect_status 0 'export json'
[ "$(grep -c '"commit"' "$scratch/export.json")" = 40 ] || fail 'export.json'

# --- ack
history ack --db "$db" --case '*' --commit 0000000010
expect_status 0 'the first digits do'
expect_text err 'acknowledged at 000000001019'
history check --db "$db"
expect_status 0 'acknowledged'
expect_text out '[acknowledged]'
history ack --db "$db" --case '*' --commit 1234567
expect_status 2 'no step there'
expect_text err 'no step'

# --- a failure
history add --db "$db" "$results/commit-40.json"
history check --db "$db"
expect_status 1 'PASSED before, FAILED now'
expect_text out 'PASSED -> FAILED  at 000000001028'
history check --db "$db" --junit
expect_status 1 'junit'
history ack --db "$db" --case "$case" --commit 000000001028
expect_status 0 'ack of a failure'
history check --db "$db"
expect_status 0 'acknowledged failure'

# --- bad usage
refuse() {
    text=$1
    shift
    history "$@"
    expect_status 2 "history $*"
    expect_text err "$text"
    expect_empty out
}
refuse 'what is to be done' --db "$db"
refuse "did you mean 'show'" shwo --db "$db"
refuse 'which file' show
refuse 'which results' add --db "$db"
refuse 'options only' show extra --db "$db"
refuse 'does not take it' check --db "$db" --last 3
refuse 'does not take it' show --db "$db" --markdown
refuse 'which step' ack --db "$db" --case '*'
refuse 'json' export --db "$db" --format xml
refuse 'no case' show --db "$db" --case 'nothing*'
refuse 'No such file' show --db "$scratch/absent.db"
refuse 'No such file' add "$scratch/absent.json" --db "$scratch/new.db"
refuse 'no SQLite database' check --db "$results/commit-00.json"
refuse 'no SQLite database' add "$results/commit-00.json" --db "$results/commit-01.json"
grep -q '"benchmarks"' "$results/commit-01.json" || fail 'a result file was overwritten'
history --help
expect_status 0 'help'
expect_text out '--case GLOB'

# --- stdout that takes nothing
status=0
"$program" history export --db "$db" >/dev/full 2>"$scratch/err" || status=$?
expect_status 2 'stdout is full'
expect_text err 'cannot write'

# --- a folder that cannot be written, and a full disk: root can make them, and is not stopped by
# permissions
if [ "$(id -u)" != 0 ]; then
    mkdir "$scratch/closed"
    chmod a-w "$scratch/closed"
    refuse 'history' add "$results/commit-00.json" --db "$scratch/closed/new.db"
    skip 'the full disk needs root; all else passed'
fi
mount_point=$scratch/disk
mkdir "$mount_point"
mount -t tmpfs -o size=256k none "$mount_point" 2>/dev/null || skip 'cannot mount a tmpfs; all else passed'
trap 'umount "$mount_point"; rm -rf "$scratch"' EXIT
history add --db "$mount_point/small.db" "$results/commit-00.json"
expect_status 0 'a small file fits'
dd if=/dev/zero of="$mount_point/filler" bs=4k 2>/dev/null || :
# shellcheck disable=SC2086
refuse 'full' add --db "$mount_point/small.db" $passed
rm "$mount_point/filler"
history show --db "$mount_point/small.db"
expect_status 0 'what was there is whole'
[ "$(grep -c PASSED "$scratch/out")" = 1 ] || fail 'the full disk left something half done'
mount -o remount,ro "$mount_point"
refuse 'small.db' add --db "$mount_point/small.db" "$results/commit-01.json"
refuse 'new.db' add --db "$mount_point/new.db" "$results/commit-01.json"
