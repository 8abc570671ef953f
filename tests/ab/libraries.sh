#!/bin/sh
# `mhabench ab` on two libraries whose differences are known: what is slower, wrong, crashes, is gone or
# new, and what claims to be the same code. Only differences that no machine hides are held.
# usage: libraries.sh PROGRAM BASE.so NEW.so
set -eu
# shellcheck source=tests/common.sh
. "$(dirname "$0")/../common.sh"
program=$1
base=$2
new=$3
small='--heads 4 --head-dim 64 --seq 64 --threads 1'

# verdict WORD TAG: the table has that verdict for that kernel.
verdict() {
    grep -Eq "^$1 .* concat/f32/scalar_$2/" "$scratch/out" || {
        show out
        show err
        fail "scalar_$2 is not $1"
    }
}

# shellcheck disable=SC2086 # words
run "$program" ab "$base" "$new" $small --budget 30 --color never
expect_status 1 'a slower, a wrong, a crashing and a missing kernel'
verdict SLOWER slow
verdict ERROR wrong
verdict ERROR crash
verdict MISSING gone
verdict NEW fresh
verdict MISSING narrow
verdict '(SAME|ENV-DRIFT)' fine
verdict '(SAME|ENV-DRIFT)' drift
expect_text out 'identical machine code'
expect_text out 'new: FAILED'
expect_text out 'signal 6'

# The other way round it is a gain; what the new side lacks and breaks is now the base's.
# shellcheck disable=SC2086
run "$program" ab "$new" "$base" $small --kernel '*_slow' --budget 30 --color never
expect_status 0 'a faster kernel'
verdict FASTER slow

# --gate none: the report tells, the exit code does not.
# shellcheck disable=SC2086
run "$program" ab "$base" "$new" $small --kernel '*_gone,*_fresh' --gate none --color never
expect_status 0 '--gate none'
verdict MISSING gone

# A library against itself is loaded twice, from a copy.
# shellcheck disable=SC2086
run "$program" ab "$base" "$base" $small --kernel '*_fine,*_drift,*_slow' --budget 20 --color never
expect_status 0 'a library against itself'
expect_text out 'machine code of all 3 rows is identical'
expect_no_text out 'SLOWER'

# A weight is packed before it is timed, also where a call is longer than a sample, and is not made
# again before the samples of a later launch.
run "$program" ab "$base" "$new" --kernel '*_packs' --heads 4 --head-dim 64 --seq 32 --threads 1 \
    --floor 50 --launches 25 --color never
expect_status 0 'a kernel that is slower to pack'
expect_text out 'scalar_packs'
expect_no_text out 'SLOWER'

# Without time nothing is settled, and that is said; it is an error only where asked for.
# shellcheck disable=SC2086
run "$program" ab "$base" "$new" $small --kernel '*_slow' --launches 3 --gate inconclusive --color never
expect_status 3 'three launches and --gate inconclusive'
verdict INCONCLUSIVE slow
# shellcheck disable=SC2086
run "$program" ab "$base" "$new" $small --kernel '*_slow' --launches 3 --color never
expect_status 0 'three launches'

# JSON goes to stdout alone.
# shellcheck disable=SC2086
run "$program" ab "$base" "$new" $small --kernel '*_slow' --launches 3 --json
expect_status 0 '--json'
expect_text out '"INCONCLUSIVE"'

# --- bad usage
run "$program" ab "$base"
expect_status 2 'one operand'
expect_empty out
run "$program" ab "$base" "$new" --floor x
expect_status 2 'a floor that is no number'
run "$program" ab "$base" "$scratch/nothing.so"
expect_status 2 'a file that does not exist'
expect_text err 'nothing.so'
run "$program" ab "$base" "$0"
expect_status 2 'a file that is no library'
expect_text err "cannot load"
run "$program" ab "$base" "$new" --kernel '*_nothing'
expect_status 2 'no such kernel'
