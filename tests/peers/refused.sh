#!/bin/sh
# A peer whose library would run at another level than its name says, or is another library, is refused with
# the reason, and never measured under that name.
# usage: refused.sh MHABENCH CC
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 cc=$2
folder=$(dirname "$program")

# A program of our own to put wrong libraries beside: it looks for them in its own folder.
mkdir "$scratch/bin"
cp "$program" "$scratch/bin/mhabench"
for file in "$folder"/libmha_*.so; do
    ln -s "$file" "$scratch/bin/"
done
replace() {
    rm "$scratch/bin/$1"
    cp "$2" "$scratch/bin/$1"
}
refused=0
# refuse KERNEL REASON [NAME=VALUE]: the kernel is UNSUPPORTED for that reason, with that in the environment.
refuse() {
    run env ${3+"$3"} "$scratch/bin/mhabench" check --json --kernel "$1" --heads 2 --head-dim 8 --seq 16 --mask none \
        --threads 1
    expect_status 0 "$1"
    # The exponential alone is checked too: that it is right, whatever its level.
    sed -i '/"exponentials":/,$d' "$scratch/out"
    expect_text out '"verdict": "UNSUPPORTED"'
    expect_text out "$2"
    expect_no_text out '"verdict": "PASSED"'
    refused=$((refused + 1))
}
runs() {
    "$program" list | grep "^ *$1 " | grep -qv 'not here'
}

if runs qk_f32_avx2_openblas; then
    # The peers are loaded by modules that find the copies beside the module: links are followed to the build's.
    for file in "$scratch"/bin/libmha_peer_*.so; do
        target=$(readlink "$file")
        rm "$file"
        cp "$target" "$file"
    done
    version=$("$program" list | sed -n 's/.*\[openblas \([0-9.]*\) .*/\1/p' | head -n 1)
    "$cc" -shared -fPIC -DVERSION="\"$version\"" "$here/fake_openblas.c" -o "$scratch/fake.so"
    replace libmha_private_openblas_avx2.so "$scratch/fake.so"
    refuse qk_f32_avx2_openblas 'OpenBLAS runs as Prescott, not as Haswell'
    "$cc" -shared -fPIC -DVERSION='"0.0.1"' "$here/fake_openblas.c" -o "$scratch/fake.so"
    replace libmha_private_openblas_avx2.so "$scratch/fake.so"
    refuse pv_f32_avx2_openblas "the library is 'OpenBLAS 0.0.1"
    if runs qk_f32_avx2_onednn; then
        replace libmha_private_onednn_avx2.so "$scratch/fake.so"
        refuse softmax_f32_avx2_onednn 'is no oneDNN for OpenMP'
        rm "$scratch/bin/libmha_private_onednn_avx2.so"
        refuse concat_f32_avx2_onednn 'cannot open shared object file'
    fi
fi
if runs softmax_f32_avx2_libmvec; then
    refuse softmax_f32_avx2_libmvec 'libmvec runs code of a lesser level' GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2
fi
# On a CPU without the level the libraries see so for themselves, whatever the harness takes for granted.
if "$program" list | grep 'qk_f32_avx512_onednn' | grep -q 'not here'; then
    refuse qk_f32_avx512_onednn 'oneDNN runs at its level' MHABENCH_ASSUME_ISA=avx512
fi
if "$program" list | grep 'qk_f32_avx512_openblas' | grep -q 'not here'; then
    refuse qk_f32_avx512_openblas 'which this CPU cannot' MHABENCH_ASSUME_ISA=avx512
fi
[ "$refused" -gt 0 ] || skip 'no peer that can be had wrong runs here'
echo "$refused refused"
