#!/bin/sh
# Configures and builds a preset of the tree, quietly unless it fails.
# usage: build_preset.sh CMAKE SOURCE PRESET
set -eu
. "$(dirname "$0")/common.sh"
cmake=$1 source=$2 preset=$3

if [ "$preset" = aarch64 ]; then
    for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64; do
        command -v "$tool" >/dev/null || skip "$tool is not installed; ./mhabench selftest as root installs it"
    done
fi

cd "$source"
# The launcher configured it, unless that failed: then the reason is told here.
if [ ! -f "build/$preset/build.ninja" ]; then
    run "$cmake" --preset "$preset"
    expect_status 0 "configuring $preset"
fi
run "$cmake" --build "build/$preset"
expect_status 0 "building $preset"
