#!/bin/sh
# What each head looks at, in several texts and through the kernels of every ISA; and what is refused.
# usage: heads.sh PROGRAM ATTEND_WEIGHTS
# An emulated program is started through its emulator, as its workers are.
# shellcheck disable=SC2086 # words
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 weights=$2

# attend TEXT OPTION...: the JSON is in $scratch/out.
attend() {
    run ${MHABENCH_EMULATOR:-} "$program" attend --json "$@"
    expect_status 0 "$*"
}

# holds HEAD CHECK NUMBER...: of the last attend.
holds() {
    ${MHABENCH_EMULATOR:-} "$weights" "$@" <"$scratch/out" || fail "$what: $*"
}

clever='The clever fox jumped'
movie='I saw the movie'
animal='The animal did not cross the street because it was tired'
dog='Dog bites man, man bites dog.'
long=$(i=0; while [ $i -lt 120 ]; do printf 'word%d , ' $i; i=$((i + 1)); done)

# --- the printed weights come back ----------------------------------------------------------------------
isas=$(${MHABENCH_EMULATOR:-} "$program" list --json | tr -d ' \n' | sed 's/"isa":/\n&/g' | sed -n 's/^"isa":"\([a-z0-9]*\)","compiled":true,.*"runs":true.*/\1/p')
case $isas in
    *scalar*) ;;
    *) fail "list --json names no ISA that runs: $isas" ;;
esac
for isa in $isas; do
    what=$isa
    # An ISA that brings no kernel of these steps has none to show.
    run ${MHABENCH_EMULATOR:-} "$program" list --isa "$isa" --op qkv_proj
    grep -q "qkv_proj_f32_$isa" "$scratch/out" || continue
    attend "$clever" --head seed-positional --isa "$isa"
    holds seed-positional percent 50 35 10 5 30 45 20 5 8 32 45 15 5 10 35 50
    attend "$movie" --head seed-previous-token --isa "$isa"
    holds seed-previous-token percent 80 10 5 5 70 20 5 5 10 75 10 5 5 10 75 10
    grep -q "qk_f32_${isa}_" "$scratch/out" || fail "$isa: another kernel did it"
    for text in "$movie" "$animal"; do
        attend "$text" --isa "$isa"
        holds previous-token largest 1
        holds identity largest 0
        holds positional falls
        holds semantic sums
    done
done
what='the first row'
run ${MHABENCH_EMULATOR:-} "$program" attend "$clever" --head seed-positional
expect_status 0 'the printed text'
grep -Eq '^The +50 +35 +10 +5$' "$scratch/out" || fail 'the first row is not 50 35 10 5'
run ${MHABENCH_EMULATOR:-} "$program" attend "$clever"
expect_text out seed-positional
expect_no_text out seed-previous-token

# --- every text and mask --------------------------------------------------------------------------------
for text in "$clever" "$movie" "$animal" "$dog" "$long" 'Word' "l'été – « ça va ? » 猫が座った"; do
    for mask in none causal; do
        what="$mask: $text"
        attend "$text" --mask "$mask"
        for head in previous-token positional identity semantic; do
            holds "$head" sums
            [ "$mask" = none ] || holds "$head" causal
        done
        holds previous-token largest 1
        holds identity largest 0
        holds positional largest 0
    done
done
what='related words'
attend 'the cat near the river saw a dog and a bank'
#        0   1   2    3   4     5   6 7   8   9 10
holds semantic near 1 7 4
holds semantic near 4 10 1
holds semantic near 0 3 5

# --- the terminal ---------------------------------------------------------------------------------------
run ${MHABENCH_EMULATOR:-} "$program" attend "$movie" --mask causal --head identity
grep -Eq '^I +100 +\. +\. +\.$' "$scratch/out" || fail 'keys ahead are not dots'
expect_no_text out "$(printf '\033')"
run ${MHABENCH_EMULATOR:-} "$program" attend "$movie" --color always
expect_text out "$(printf '\033[48;5;')"
run ${MHABENCH_EMULATOR:-} "$program" attend 'zyx saw xyz'
expect_text err 'not in the table of words, so near to no other: zyx, xyz'

# --- what is refused --------------------------------------------------------------------------------------
refused() {
    part=$1
    shift
    run ${MHABENCH_EMULATOR:-} "$program" attend "$@"
    expect_status 2 "attend $*"
    expect_text err "$part"
    expect_empty out
    [ "$(wc -l <"$scratch/err")" = 1 ] || {
        show err
        fail "attend $*: not one line"
    }
}
refused 'its weights are those of one text, "The clever fox jumped"' "$movie" --head seed-positional
refused 'its weights are those of one text, "I saw the movie"' 'I saw the film' --head seed-previous-token
refused 'its weights are those of one text' 'i saw the movie' --head seed-previous-token
refused 'its weights are those of one text' 'I saw the movie.' --head seed-previous-token
refused 'it holds no word' ''
refused 'it holds no word' '   '
refused 'which text?'
refused 'put all of it in quotes' Dog bites man
refused "did you mean 'previous-token'" "$movie" --head previous-tokn
refused "known are none, causal" "$movie" --mask window:2
refused 'more than 256' "$long $long"
refused 'byte 4 is no UTF-8' "$(printf 'The \377 fox')"
refused 'byte 4 begins a control character' "$(printf 'The \033[31m fox')"
refused 'no such kernel of qk' "$movie" --with qk=qk_f32_scalar_nope
refused 'no such kernel of qk' "$movie" --with qk=softmax_f32_scalar_libm
refused 'known are qkv_proj, qk, softmax' "$movie" --with pv=pv_f32_scalar_axpy
