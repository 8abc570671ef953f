#!/bin/sh
# Every kernel that `list` says runs here is checked, not those of the best instruction set alone (aprender
# issue 3105: AVX2 was wrong, and nobody saw it on machines with AVX-512).
# usage: every_variant.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
program=$1

run "$program" list
expect_status 0 'list'
sed -n 's/^  \([a-z_]*_f32_[a-z0-9_]*\) .*/&/p' "$scratch/out" | grep -v ' not here ' | awk '{print $1}' |
    sort >"$scratch/listed"
[ "$(wc -l <"$scratch/listed")" -ge 4 ] || {
    show out
    fail 'list names hardly a kernel'
}
ops=$(sed 's/_f32_.*//' "$scratch/listed" | sort -u | paste -sd, -)
run "$program" check --op "$ops" --batch 1 --heads 2 --kv-heads 2 --head-dim 8 --seq 4 --mask none --json
expect_status 0 'check'
sed -n 's/^ *"kernel": "\(.*_f32_.*\)",$/\1/p' "$scratch/out" | sort -u >"$scratch/checked"
cmp -s "$scratch/listed" "$scratch/checked" || {
    diff "$scratch/listed" "$scratch/checked" >&2 || :
    fail 'the kernels that run here and those that were checked differ'
}
