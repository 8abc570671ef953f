#!/bin/sh
# --data: a kernel that is wrong in two classes of data is caught in these and trusted in the others, by
# check and by run.
# usage: data_fault.sh MHABENCH PLUGIN
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2

# The emulator is a list of words.
# shellcheck disable=SC2086
check() {
    run ${MHABENCH_EMULATOR:-} "$program" check --verbose --plugin "$plugin" --op softmax --batch 1 --heads 2 \
        --head-dim 16 --seq-q 64 --seq-kv 9 --mask none --threads 1 "$@"
}
wrong=softmax_f32_scalar_kept_shift right=softmax_f32_scalar_right
case_of='softmax/f32/scalar_kept_shift/batch:1/heads:2/head_dim:16/seq_q:64/seq_kv:9'

# Every class that there was before drift and jump lets it pass.
others=normal,uniform,one_huge,ramp,cancel,e30,negative,overflow,masked,deep,nan,inf,minus_inf
check --kernel "$wrong" --data "$others"
expect_status 0 "it is right on other data"
expect_text out "PASSED      $case_of/data:normal/threads:1"
expect_text out "PASSED      $case_of/data:e30/threads:1"
expect_no_text out 'data:jump'

for class in drift jump; do
    check --kernel "$wrong,$right" --data "normal,$class"
    expect_status 1 "it is wrong on $class"
    expect_text out "PASSED      $case_of/data:normal/threads:1"
    expect_text out "FAILED      $case_of/data:$class/threads:1"
    expect_text out "PASSED      softmax_f32_scalar_right"
    expect_text out "--data $class --seed"
    grep -A1 "^FAILED *$case_of" "$scratch/out" | grep "    data $class, " >"$scratch/filtered" ||
        fail "no reason names the class $class"
    # The whole walk sees the same data in the same layouts: the same place, the same bits.
    if [ "$class" = drift ]; then
        check --kernel "$wrong"
        expect_status 1 "it is wrong on some data"
        grep -A1 "^FAILED *$case_of/threads:1" "$scratch/out" | grep "    data $class, " >"$scratch/whole" ||
            fail "the whole walk does not find it on $class"
        cmp -s "$scratch/filtered" "$scratch/whole" || {
            show filtered
            show whole
            fail "alone, $class is other data than in the whole walk"
        }
    fi
done

# Timed only on data that it is right on. Emulated, nothing is timed.
if [ -z "${MHABENCH_EMULATOR:-}" ]; then
    run "$program" run --plugin "$plugin" --kernel "$wrong,$right" --op softmax --batch 1 --heads 2 --head-dim 16 \
        --seq-q 64 --seq-kv 9 --mask none --threads 1 --data normal,jump --launches 1 --budget 1 \
        --benchmark_min_time=0.002 --json --out "$scratch/result.json"
    expect_status 1 "it is wrong on jump"
    # Name, verdict and time of each row, in one line.
    sed -n 's/^ *"name": "\(softmax[^"]*\)".*/\1/p; s/^ *"verdict": "\(.*\)".*/ \1/p
            s/^ *"median_ns": \([^,]*\).*/ \1/p' "$scratch/result.json" |
        awk '/^softmax/ { if (line) print line; line = $0; next } { line = line $0 } END { print line }' >"$scratch/rows"
    for row in 'kept_shift/[^ ]*/seq_kv:9/threads:1 PASSED [0-9]' 'kept_shift/[^ ]*/data:jump/threads:1 FAILED null' \
        'scalar_right/[^ ]*/seq_kv:9/threads:1 PASSED [0-9]' 'scalar_right/[^ ]*/data:jump/threads:1 PASSED [0-9]'; do
        grep -q "$row" "$scratch/rows" || {
            show rows
            fail "no row is: $row"
        }
    done
    grep -q '"repro": ".* --mask none --data jump --threads 1 ' "$scratch/result.json" || {
        show result.json
        fail "no line repeats the failure on jump"
    }
fi
