#!/bin/sh
# No product of oneDNN's is left to its plain loops, which it takes without a word where it has no code for a
# layout: they need hundreds of times as long, and a peer in the table would be none.
# usage: generated.sh MHABENCH
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1

products=0
# As many rows as the layout of the packed weights is asked for, more, fewer, and one.
for kernel in $("$program" list | awk '/_proj_f32_.*_onednn / && !/not here/ { print $1 }'); do
    run env DNNL_VERBOSE=1 "$program" run --kernel "$kernel" --heads 12 --head-dim 64 --seq 512,128,45,1 --threads 1 \
        --launches 1 --out "$scratch/result.json"
    expect_status 0 "$kernel"
    cat "$scratch/out" "$scratch/err" | grep ',exec,cpu,matmul,' >"$scratch/executed" ||
        fail "$kernel: no product is told of"
    if grep -m 1 ',matmul,ref' "$scratch/executed"; then
        fail "$kernel: left to plain loops"
    fi
    products=$((products + $(wc -l <"$scratch/executed")))
done
[ "$products" -gt 0 ] || skip 'oneDNN does not run here'
echo "$products products"
