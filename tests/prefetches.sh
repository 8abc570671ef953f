#!/bin/sh
# Checks that the compiler kept what kernels fetch ahead of themselves: gcc takes a function that does nothing
# but fetch for one without effect and drops its calls unless it is inlined early. A fetch changes no
# result, so that nothing else would notice.
# usage: prefetches.sh OBJDUMP LIST
#        lines of LIST: "kernel FILE.o"; others are passed over
#
# Looked at are hand-written variants for AVX2 and AVX-512. Those of qk, pv and sdpa: those of dots (keys of few
# queries), those of axpys (their values), those of tiles (rows of P to come, into L2 by AVX-512) and others
# (prefetcht1: the group that follows; prefetcht0: lines of scores that are not whole). Those that
# go past the caches: rows of their input, into L2 (prefetcht1) and L1.
set -eu
. "$(dirname "$0")/common.sh"
objdump=$1 list=$2

# fetches FILE.o: parts of it and the instructions by which they fetch.
fetches() {
    "$objdump" -d --no-show-raw-insn "$1" | awk '
        /^[0-9a-f]+ <.*>:$/ {
            part = match($2, /^<(dots|axpys)_[0-9]/) ? substr($2, 2, index($2, "_") - 2) : "other"
            part = $2 ~ /_tile/ ? "tile" : part
        }
        $2 ~ /^prefetch/ { print part "-" $2 }'
}

looked=0
sed -n 's/^kernel //p' "$list" >"$scratch/objects"
while read -r object; do
    case ${object##*/} in
        *_autovec.*) continue ;;
        qk_f32_avx2_*[0-9]x[0-9]*.c.o) wanted='dots-prefetcht0 dots-prefetcht1 other-prefetcht1' ;;
        qk_f32_avx512_nt_[0-9]x[0-9]*.c.o) wanted='dots-prefetcht0 other-prefetcht0 other-prefetcht1' ;;
        qk_*_avx2_*[0-9]x[0-9]*.c.o | qk_*_avx512*[0-9]x[0-9]*.c.o) wanted='dots-prefetcht0 other-prefetcht1' ;;
        pv_f32_avx512_*[0-9]x[0-9]*.c.o | pv_bf16_avx512bf16_*[0-9]x[0-9]*.c.o)
            wanted='axpys-prefetcht0 tile-prefetcht1 other-prefetcht1'
            ;;
        pv_*_avx2_*[0-9]x[0-9]*.c.o | pv_*_avx512*[0-9]x[0-9]*.c.o) wanted='axpys-prefetcht0 other-prefetcht1' ;;
        sdpa_*_avx2_*[0-9]x[0-9]*.c.o | sdpa_*_avx512*[0-9]x[0-9]*.c.o)
            wanted='dots-prefetcht0 axpys-prefetcht0 other-prefetcht1'
            ;;
        rope_*_avx2_nt.c.o | rope_*_avx512_nt.c.o | softmax_*_avx2_*_nt.c.o | softmax_*_avx512_*_nt.c.o)
            wanted='other-prefetcht0 other-prefetcht1'
            ;;
        concat_*_avx2_nt.c.o | concat_*_avx512_nt.c.o) wanted='other-prefetcht1' ;;
        split_*_avx2_nt.c.o | split_*_avx512_nt.c.o | copy_*_avx2_nt.c.o | copy_*_avx512_nt.c.o)
            wanted='other-prefetcht0'
            ;;
        *) continue ;;
    esac
    looked=$((looked + 1))
    fetches "$object" >"$scratch/found"
    for fetch in $wanted; do
        grep -qx -- "$fetch" "$scratch/found" || fail "${object##*/}: no $fetch is left"
    done
done <"$scratch/objects"
[ "$looked" -gt 0 ] || skip 'no such kernel is built'
echo "$looked kernels keep what they fetch"
