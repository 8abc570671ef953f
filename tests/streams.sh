#!/bin/sh
# Checks that the variants that are named nt, and no others, store past the caches, and that they fence what they
# stored: x86 lets others see such stores late without, which no result on one core shows.
# usage: streams.sh OBJDUMP LIST
#        lines of LIST: "kernel FILE.o"; others are passed over
set -eu
. "$(dirname "$0")/common.sh"
objdump=$1 list=$2

looked=0
sed -n 's/^kernel //p' "$list" >"$scratch/objects"
while read -r object; do
    name=${object##*/}
    case $name in
        *_autovec.*) continue ;;
        *_avx2_* | *_avx512*_*) ;;
        *) continue ;;
    esac
    looked=$((looked + 1))
    "$objdump" -d --no-show-raw-insn "$object" >"$scratch/code"
    streams=$(grep -cE '[[:space:]]v?movnt' "$scratch/code" || :)
    fences=$(grep -cE '[[:space:]][sm]fence' "$scratch/code" || :)
    case $name in
        *_nt.c.o | *_nt_*)
            [ "$streams" -gt 0 ] || fail "$name: no streaming store is left"
            [ "$fences" -gt 0 ] || fail "$name: its streaming stores are not fenced"
            ;;
        *) [ "$streams" -eq 0 ] || fail "$name: streams, and is not named nt" ;;
    esac
done <"$scratch/objects"
[ "$looked" -gt 0 ] || skip 'no such kernel is built'
echo "$looked kernels stream as they are named"
