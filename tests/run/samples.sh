#!/bin/sh
# Samples are 10 ms long; a quick run shortens them where its cases would not get a second launch, and
# nothing shortens those of another preset or of --benchmark_min_time.
# usage: samples.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
program=$1

# expect_samples SECONDS OPTION...: what a run of one case notes in its file.
expect_samples() {
    wanted=$1
    shift
    run "$program" run --kernel softmax_f32_scalar_libm --op softmax --batch 1 --heads 1 --head-dim 16 --seq 16 \
        --mask none --threads 1 --launches 1 --out "$scratch/result.json" "$@"
    expect_status 0 "$*"
    expect_text result.json "\"min_time_s\": $wanted,"
}
expect_samples 0.01
expect_samples 0.002 --budget 0.1
expect_samples 0.01 --budget 0.1 --preset edge
expect_samples 0.004 --budget 0.1 --benchmark_min_time 0.004
