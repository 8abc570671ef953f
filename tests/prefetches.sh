#!/bin/sh
# Checks that the compiler kept what products fetch ahead of themselves: gcc takes a function that does nothing
# but fetch for one without effect and drops its calls unless it is inlined early. A fetch changes no
# result, so that nothing else would notice.
# usage: prefetches.sh OBJDUMP LIST
#        lines of LIST: "kernel FILE.o"; others are passed over
#
# Looked at are the hand-written variants of qk, pv and sdpa for AVX2 and AVX-512, outside of their tiles, whose
# fetches stand among loads: in all prefetcht0 (rows of decoding, of P), with AVX-512 prefetcht1 too (the group
# that follows).
set -eu
. "$(dirname "$0")/common.sh"
objdump=$1 list=$2

# fetches FILE.o: the instructions that fetch, outside of tiles.
fetches() {
    "$objdump" -d --no-show-raw-insn "$1" | awk '
        /^[0-9a-f]+ <.*>:$/ { tile = $2 ~ /_tile/ }
        !tile && $2 ~ /^prefetch/ { print $2 }'
}

looked=0
sed -n 's/^kernel //p' "$list" >"$scratch/objects"
while read -r object; do
    case ${object##*/} in
        *_autovec.*) continue ;;
        qk_*_avx512*[0-9]x[0-9]*.c.o | pv_*_avx512*[0-9]x[0-9]*.c.o | sdpa_*_avx512*[0-9]x[0-9]*.c.o)
            hints='prefetcht0 prefetcht1'
            ;;
        qk_*_avx2_*[0-9]x[0-9]*.c.o | pv_*_avx2_*[0-9]x[0-9]*.c.o | sdpa_*_avx2_*[0-9]x[0-9]*.c.o)
            hints=prefetcht0
            ;;
        *) continue ;;
    esac
    looked=$((looked + 1))
    fetches "$object" >"$scratch/found"
    for hint in $hints; do
        grep -qx "$hint" "$scratch/found" || fail "${object##*/}: no $hint is left outside of its tiles"
    done
done <"$scratch/objects"
[ "$looked" -gt 0 ] || skip 'no such kernel is built'
echo "$looked kernels keep what they fetch"
