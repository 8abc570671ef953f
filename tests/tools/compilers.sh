#!/bin/sh
# The hand-written kernels as two compilers build them, side by side: a table in Markdown, a kernel a row.
# usage: compilers.sh PROGRAM CC CC [AB-OPTION]...
#   e.g. compilers.sh build/release/bin/mhabench gcc clang-19 --isa avx2 --threads 1
# BEFORE holds words to be put before each measurement, such as `flock FILE`. Takes four minutes.
set -eu
here=$(dirname -- "$(readlink -f -- "$0")")
. "$here/../common.sh"
program=$1 base=$2 new=$3
shift 3

for compiler in "$base" "$new"; do
    command -v "$compiler" >/dev/null || skip "$compiler is not installed"
    run env CC="$compiler" cmake -S "$here/../.." -B "$scratch/$compiler" -G Ninja -DMHA_KERNELS_ONLY=ON
    expect_status 0 "configuring for $compiler"
    run cmake --build "$scratch/$compiler" --target mha_kernels
    expect_status 0 "building with $compiler"
done

: >"$scratch/lines"
measure() {
    # shellcheck disable=SC2086 # words
    run ${BEFORE-} "$program" ab "$scratch/$base/bin/libmha_kernels.so" "$scratch/$new/bin/libmha_kernels.so" \
        --gate none --budget 30 "$@"
    expect_status 0 "ab $*"
    grep -E '^(SAME|FASTER|SLOWER|INCONCLUSIVE|ENV-DRIFT) ' "$scratch/out" >>"$scratch/lines" || fail "ab $* printed no row"
}
for op in qk pv softmax sdpa concat,split rope,bias,sinusoid,embed; do
    measure --op $op --preset quick "$@"
done
# GPT-3's weights take the budget for a single sample.
measure --op qkv_proj,out_proj --heads 12 --head-dim 64 --seq 128 "$@"

printf '%s\n' "$("$base" --version | head -n 1), $("$new" --version | head -n 1)"
echo
echo "| kernel | rows | time with $new against $base: least | median | most | faster | slower | same | undecided |"
echo '|---|---|---|---|---|---|---|---|---|'
# By kernel, the changes of each in order.
awk '$2 ~ /%$/ {
    split($NF, part, "/")
    sub(/%/, "", $2)
    print part[1] "_" part[2] "_" part[3], $2 + 0, $1
}' "$scratch/lines" | sort -k1,1 -k2,2n | awk '
function row() {
    if (n) {
        printf "| `%s` | %d | %+.1f %% | %+.1f %% | %+.1f %% | %d | %d | %d | %d |\n", name, n, change[1],
            (change[int((n + 1) / 2)] + change[int(n / 2) + 1]) / 2, change[n], verdicts["FASTER"], verdicts["SLOWER"],
            verdicts["SAME"], n - verdicts["FASTER"] - verdicts["SLOWER"] - verdicts["SAME"]
    }
    n = 0
    split("", verdicts)
}
$1 != name { row() }
{ name = $1; change[++n] = $2; verdicts[$3]++ }
END { row() }'
