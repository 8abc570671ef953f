#!/bin/sh
# What `study` takes and refuses; nothing is measured here.
# usage: options.sh PROGRAM
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1

run "$program" study --help
expect_status 0 "help"
for text in --budget --threads --isa --with --out --resume --launches --seed; do
    expect_text out "$text"
done
run "$program" study --op qk
expect_status 2 "a selection"
expect_text err "study does not take --op"
run "$program" study qk
expect_status 2 "an operand"
run "$program" study --with qk=qk_f32_scalar_nobody
expect_status 2 "a kernel that there is not"
expect_text err "no such kernel"
run "$program" study --with qk=softmax_f32_scalar_libm
expect_status 2 "a kernel of another op"
run "$program" study --out "$scratch/none/study.json"
expect_status 2 "a folder that there is not"
run "$program" study --resume --out "$scratch/study.json"
expect_status 2 "nothing to go on with"
expect_text err "journal"
run "$program" study --threads 99999
expect_status 2 "more threads than there are"
# An ISA that this processor does not have.
for isa in avx512 neon avx2; do
    run "$program" list --isa "$isa"
    if [ "$status" = 77 ]; then
        run "$program" study --isa "$isa"
        expect_status 77 "$isa is lacking"
    fi
done
