#!/bin/sh
# What the head comments of the softmax kernels say of their exponentials ("1.14 ULP of exp") is held
# against a measurement of the same files: over a sample with several seeds, or, with EXHAUSTIVE,
# over every float.
# usage: claims.sh PROGRAM ISA KERNELS SEED...|EXHAUSTIVE
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 isa=$2 kernels=$3
shift 3
cd "$scratch"

# claim NAME: the figure in the head comment of a kernel, or of the file that its comment refers to.
claim() {
    file=$kernels/softmax/$1.c
    other=$(sed -n 's|^///.* see \([a-z0-9_]*\.inl\)\.$|\1|p' "$file")
    sed -n '/^\/\/\//!q; s|^/// Error: \([0-9.]*\) ULP of exp.*|\1|p' "$kernels/softmax/${other:-$1.c}"
}

# Ours alone: what a peer's exponential is good for is its library's to say.
own=$(cd "$kernels/softmax" && printf '%s,' softmax_f32_"$isa"_*.c | sed 's/\.c,/,/g; s/,$//')
seen=0
for seed; do
    if [ "$seed" = EXHAUSTIVE ]; then
        options=--exhaustive
    else
        options="--seed $seed"
    fi
    # An emulated program is started through its emulator, as its workers are.
    # shellcheck disable=SC2086 # words
    run ${MHABENCH_EMULATOR-} "$program" check --op softmax --isa "$isa" --kernel "$own" --batch 1 --heads 1 --seq 1 \
        --mask none $options
    [ "$status" != 77 ] || skip "this CPU has no $isa"
    expect_status 0 "the exponentials of $isa"
    sed -n 's/^PASSED  *\(softmax_[a-z0-9_]*\) .* floats  max \([0-9.]*\) ulp.*/\1 \2/p' out >figures
    while read -r name ulp; do
        claimed=$(claim "$name")
        [ -n "$claimed" ] || fail "$name: its head comment does not say 'Error: <figure> ULP of exp'"
        # Half a unit is what rounding alone costs; a sample that finds less has not looked.
        awk "BEGIN { exit !($ulp >= 0.5 && $ulp <= $claimed) }" ||
            fail "$name: measured $ulp ULP, its head comment says $claimed"
        printf '%s: %s of %s ULP\n' "$name" "$ulp" "$claimed"
        seen=$((seen + 1))
    done <figures
done
[ "$seen" -gt 0 ] || fail "no exponential of $isa was walked"
