#!/bin/sh
# The program on a CPU that lacks instruction sets: it runs what the CPU has, and refuses the rest
# before any such instruction.
# usage: dispatch.sh PROGRAM QEMU-CPU "ISA..." "ISA..."     (has, lacks)
set -eu
. "$(dirname "$0")/common.sh"
program=$1 cpu=$2 has=$3 lacks=$4
command -v qemu-x86_64 >/dev/null || skip 'qemu-x86_64 is not installed'

# Workers are started by the program: without this they would run on the real CPU.
export MHABENCH_EMULATOR="qemu-x86_64 -cpu $cpu"
emulated() {
    run qemu-x86_64 -cpu "$cpu" "$program" "$@"
}

# Whole vectors in every ISA: qemu 7.2 reads all of a masked load, and faults at the page behind a tail.
problem='--op softmax --batch 1 --heads 1 --head-dim 64 --seq 64 --mask none'
for isa in $has; do
    # shellcheck disable=SC2086 # words
    emulated check --isa "$isa" $problem
    expect_status 0 "check --isa $isa on $cpu"
done
for isa in $lacks; do
    # shellcheck disable=SC2086 # words
    emulated check --isa "$isa" $problem
    expect_status 77 "check --isa $isa on $cpu"
done
# What the CPU lacks is no failure of the rest.
# shellcheck disable=SC2086 # words
emulated check $problem
expect_status 0 "check of everything on $cpu"
emulated list
expect_status 0 "list on $cpu"
emulated machine --json
expect_status 0 "machine on $cpu"
tr -d ' ' <"$scratch/out" >"$scratch/packed"
grep -q '"emulated":true' "$scratch/packed" || fail 'machine does not say that it is emulated'
