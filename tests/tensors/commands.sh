#!/bin/sh
# check and run over a user's own tensors: what they make of them, and what they refuse.
# usage: commands.sh PROGRAM MAKE_TENSORS CC KERNELS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 make=$2 cc=$3 kernels=$4
cd "$scratch"
names='--tensor-names q=layer.q,k=layer.k,v=layer.v'
"$make" safetensors real.safetensors 2 4 2 9 17 24
"$make" safetensors other.safetensors 2 4 2 9 17 24 7

# --- check --------------------------------------------------------------------------------------------
# shellcheck disable=SC2086 # words
run "$program" check --verbose --isa scalar --tensors real.safetensors $names
expect_status 0 'check of a safetensors file'
expect_text out 'qk/f32/scalar_dot/batch:2/heads:4/kv_heads:2/head_dim:24/seq_q:9/seq_kv:17/'
expect_text out 'softmax/f32/scalar_libm/batch:2/heads:4/head_dim:24/seq_q:9/seq_kv:17/mask:causal/'
expect_text out 'pv/f32/scalar_'
expect_text err 'left out: '
for op in qkv_proj split concat; do
    expect_no_text out "$op/f32"
done

# Layout: the same numbers are other heads.
# shellcheck disable=SC2086 # words
run "$program" check --verbose --isa scalar --op qk --tensors real.safetensors $names --tensor-layout bshd
expect_status 2 'the wrong layout'
expect_text err 'is the layout right?'
"$make" npy q.npy 5 3 8
"$make" npy k.npy 7 3 8
"$make" npy v.npy 7 3 8
run "$program" check --verbose --isa scalar --op qk,pv --tensors q.npy,k.npy,v.npy --tensor-layout bshd
expect_status 0 'check of three .npy files'
expect_text out 'qk/f32/scalar_dot/batch:1/heads:3/head_dim:8/seq_q:5/seq_kv:7/'
expect_text out 'pv/f32/scalar_'

# Without v there are still scores.
run "$program" check --verbose --isa scalar --tensors q.npy,k.npy --tensor-layout bshd
expect_status 0 'check without v'
expect_text out 'qk/f32/scalar_dot'
expect_no_text out 'pv/f32'
expect_text err 'there is no v'

# --- the values are what is computed with ---------------------------------------------------------------
# A kernel that is wrong for one value of the file alone, 3.5 (the 225th of q), fails over it and only so.
sed 's/^enum { TRIGGER_BITS = .*/enum { TRIGGER_BITS = 0x40600000 };/' "$here/one_value.c" >one_value.c
"$cc" -O2 -shared -fPIC -I "$kernels" one_value.c -o one_value.so
"$make" npy q.npy 1 30 8
"$make" npy k.npy 1 4 8
run "$program" check --plugin ./one_value.so --kernel qk_f32_scalar_one_value --tensors q.npy,k.npy
expect_status 1 'a fault that only the file brings out'
expect_text out 'data tensors'
expect_text out 'repeat: ./mhabench check --kernel qk_f32_scalar_one_value --op qk --dtype f32 --mask none --tensors q.npy,k.npy --seed 1'
run "$program" check --plugin ./one_value.so --kernel qk_f32_scalar_one_value --heads 1 --kv-heads 1 --head-dim 8 --seq-q 30 --seq-kv 4
expect_status 0 'the same kernel without the file'

# --- a narrow type ----------------------------------------------------------------------------------------
# shellcheck disable=SC2086 # words
run "$program" check --verbose --isa scalar --op qk,pv,sdpa --dtype bf16,f16 --tensors real.safetensors $names
expect_status 0 'check of a file that is rounded'
for op in qk pv sdpa; do
    expect_text out "$op/bf16/scalar_"
    expect_text out "$op/f16/scalar_"
done
# To the nearest, and in the middle to the even one: kernels that are right only over what that makes of the file.
"$cc" -O2 -shared -fPIC -I "$kernels" "$here/rounded.c" -o rounded.so
"$make" npy q.npy 1 300 8
for dtype in bf16 f16; do
    run "$program" check --plugin ./rounded.so --kernel "qk_${dtype}_scalar_rounded" --op qk --dtype "$dtype" --tensors q.npy,k.npy
    expect_status 0 "values of a file rounded to $dtype"
    expect_text out "PASSED      qk_${dtype}_scalar_rounded"
    run "$program" check --plugin ./rounded.so --kernel "qk_${dtype}_scalar_rounded" --op qk --dtype "$dtype" --heads 1 --kv-heads 1 \
        --head-dim 8 --seq-q 300 --seq-kv 4
    expect_status 1 "other values of $dtype"
done
"$make" npy q.npy 1 30 8

# --- run ------------------------------------------------------------------------------------------------
measure() {
    # shellcheck disable=SC2086 # words
    run "$program" run --op qk --isa scalar --threads 1 --launches 1 --benchmark_min_time 0.001 --out result.json $names "$@"
}
measure --tensors real.safetensors
expect_status 0 'run'
tr -d ' \n' <result.json >flat
grep -q '"tensors":{"files":\["real.safetensors"\],"names":\["q=layer.q","k=layer.k","v=layer.v"\],"layout":"bhsd","hash":"[0-9a-f]*"}' flat ||
    fail "the context does not tell of the tensors: $(grep -o '"tensors":.*' flat)"
grep -q -- '--tensorsreal.safetensors' flat || fail 'the repeat line lacks --tensors'

# --- a journal is of its data ---------------------------------------------------------------------------
# shellcheck disable=SC2086 # words
"$program" run --op qk --isa scalar --threads 1 --launches 1000 --benchmark_min_time 0.001 --out result.json $names \
    --tensors real.safetensors >"$scratch/log" 2>&1 </dev/null &
pid=$!
tries=0
until [ -s result.json.journal ] && grep -q '"samples"' result.json.journal; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || fail 'no journal'
    sleep 0.1
done
kill -KILL "$pid"
wait "$pid" || :
measure --tensors other.safetensors --resume
expect_status 2 'another file with the same shape'
expect_text err 'of another selection, seed, data or build'
measure --tensors real.safetensors --resume
expect_status 0 'the same file'

# --- what is refused ------------------------------------------------------------------------------------
refused() {
    what=$1 part=$2
    shift 2
    run "$program" check "$@"
    expect_status 2 "$what"
    expect_text err "$part"
    [ "$(wc -l <err)" = 1 ] || {
        show err
        fail "$what: not one line"
    }
}
refused 'an axis beside tensors' '--heads: the shape is that of the tensors' --tensors q.npy,k.npy --heads 4
refused 'a preset beside tensors' '--preset: the shape is that of the tensors' --tensors q.npy,k.npy --preset gpt3
refused 'names without tensors' '--tensor-names: needs --tensors' --tensor-names q=a
refused 'a layout without tensors' '--tensor-layout: needs --tensors' --tensor-layout bhsd
refused 'names of .npy files' '.npy files have no names' --tensors q.npy,k.npy --tensor-names q=a
refused 'one .npy file' 'an .npy file holds one tensor' --tensors q.npy
refused 'a missing file' 'none.npy: No such file' --tensors none.npy,k.npy
refused 'a folder' 'no regular file' --tensors .
refused 'default names' "no tensor 'q'; it has 'layer.q', 'layer.k', 'layer.v'" --tensors real.safetensors
refused 'an unknown name' "no tensor 'nope'" --tensors real.safetensors --tensor-names q=nope,k=layer.k
refused 'an op that takes none' 'no op that takes queries, keys or values' --tensors q.npy,k.npy --op concat
refused 'other tensors' "known are q, k, v" --tensors real.safetensors --tensor-names x=layer.q
refused 'an unknown layout' 'bhsd, bshd' --tensors q.npy,k.npy --tensor-layout sbhd
head -c 100 real.safetensors >cut.safetensors
refused 'a cut header' 'truncated' --tensors cut.safetensors
head -c 1000 real.safetensors >cut.safetensors
refused 'cut data' 'lies outside the file' --tensors cut.safetensors
