#!/bin/sh
# `mhabench run` of the whole layer: every step has a time and its kernel, the shares add up, the table
# shows them; and --with changes the kernel of its step and no other.
# usage: steps.sh MHABENCH
set -eu
. "$(dirname "$0")/../common.sh"
program=$1

run "$program" run --kernel 'mha_f32_scalar_*' --batch 1 --heads 2 --head-dim 16 --seq-q 5 --seq-kv 9 --mask causal \
    --position rope --threads 1 --launches 2 --benchmark_min_time 0.001 --out "$scratch/plain.json"
expect_status 0 "the layer is right"
expect_text out "rope "
expect_text out "sdpa "
expect_text out "out_proj "

# steps FILE: "kernel op" of each step of each row, and a check of the numbers.
steps() {
    awk '
        function text(line) { sub(/^[^:]*: "/, "", line); sub(/",?$/, "", line); return line }
        /"steps": \[/ { inside = 1; sum = count = ns = 0; total = 0; next }
        inside && /^ *\]/ {
            inside = 0
            rows++
            if (count == 0 || sum < 0.999 || sum > 1.001) { print "shares add up to " sum; exit 1 }
            for (i = 1; i <= count; i++) {
                gap = share[i] - time[i] / total
                if (gap > 1e-6 || gap < -1e-6) { print "share " share[i] " of " time[i] " in " total; exit 1 }
            }
        }
        inside && /"op":/ { op = text($0) }
        inside && /"kernel":/ { kernel = text($0) }
        inside && /"ns":/ { value = $2 + 0; if (!(value > 0)) { print "no time: " $0; exit 1 } time[++count] = value; total += value }
        inside && /"share":/ { share[count] = $2 + 0; sum += $2; print kernel, op }
        END { if (rows != 2) { print rows " rows have steps"; exit 1 } }' "$1"
}
steps "$scratch/plain.json" >"$scratch/plain" || { show plain; fail "the steps' numbers"; }
for step in qkv_proj split rope qk softmax pv concat out_proj sdpa; do
    grep -q "^${step}_f32_scalar_.* $step\$" "$scratch/plain" || { show plain; fail "no step $step"; }
done

# Both reports of a file read what was written.
run "$program" report "$scratch/plain.json"
expect_status 0 "the file is read back"
expect_text out "rope "

other=$("$program" list --op qk | sed -n 's/^ *\(qk_f32_[a-z0-9]*_autovec\) .*/\1/p' | head -n 1)
isa=$(printf '%s' "$other" | sed 's/qk_f32_\(.*\)_autovec/\1/')
if [ -n "$other" ] && "$program" list --op qk | grep "$other" | grep -qv 'not here'; then
    selection="--kernel mha_f32_${isa}_unfused --batch 1 --heads 2 --head-dim 16 --seq 5 --mask none --threads 1
               --launches 1 --benchmark_min_time 0.001"
    # shellcheck disable=SC2086 # a list of words
    run "$program" run $selection --out "$scratch/before.json"
    expect_status 0 "hand-written kernels"
    # shellcheck disable=SC2086
    run "$program" run $selection --with "qk=$other" --out "$scratch/after.json"
    expect_status 0 "another kernel of qk"
    grep '"kernel": ' "$scratch/before.json" | grep -v '"mha_' >"$scratch/before"
    grep '"kernel": ' "$scratch/after.json" | grep -v '"mha_' >"$scratch/after"
    grep -q "\"$other\"" "$scratch/after" || { show after; fail "--with puts $other in place"; }
    ! grep -q "\"$other\"" "$scratch/before" || { show before; fail "it stood there already"; }
    [ "$(grep -v '"qk_' "$scratch/before")" = "$(grep -v '"qk_' "$scratch/after")" ] || {
        show before
        show after
        fail "--with qk=... changes no other step"
    }
fi
