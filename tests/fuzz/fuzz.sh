#!/bin/sh
# Lets one fuzzer run for a while, from the committed corpus on. What it finds stays in BUILD/found/NAME.
# usage: fuzz.sh BUILD NAME SECONDS
set -eu
. "$(dirname "$0")/../common.sh"
build=$1 name=$2 seconds=$3
corpus=$(dirname "$0")/corpus/$name
fuzzer=$build/bin/fuzz_$name

[ -x "$fuzzer" ] || skip 'the fuzzers are not built: fuzz.build tells why'

# New inputs go to the first folder, which is thrown away: the committed corpus grows by hand only.
mkdir "$scratch/new"
mkdir -p "$build/found/$name"
set -- -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=8192 \
    -close_fd_mask=3 -print_final_stats=1 -artifact_prefix="$build/found/$name/"
[ ! -f "$corpus.dict" ] || set -- "$@" -dict="$corpus.dict"
status=0
"$fuzzer" "$@" "$scratch/new" "$corpus" >"$scratch/out" 2>&1 </dev/null || status=$?
[ "$status" = 0 ] || {
    tail -n 60 "$scratch/out" >&2
    fail "fuzz_$name found something; again with: $fuzzer FILE, the file is in $build/found/$name"
}
# A fuzzer that runs nothing finds nothing.
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$scratch/out")
[ "${runs:-0}" -gt 0 ] || {
    cat "$scratch/out" >&2
    fail 'no input was run'
}
echo "fuzz_$name: $runs inputs"
