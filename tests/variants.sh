#!/bin/sh
# variants.inc: whatever does not fit stops the configuration, with the reason.
# usage: variants.sh CMAKE CC SOURCE
set -eu
. "$(dirname "$0")/common.sh"
cmake=$1 cc=$2 source=$3

cp -R "$source/kernels" "$scratch/kernels"
list=$scratch/kernels/variants.inc
cp "$list" "$scratch/variants.inc"
# The kernels' folder alone is configured: what it expects of the tree around it, and no more.
cat >"$scratch/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(scratch VERSION 1.0 LANGUAGES C)
add_library(mha_flags INTERFACE)
function(mha_missing what)
endfunction()
add_subdirectory(kernels)
TEXT

configure() {
    run "$cmake" -S "$scratch" -B "$scratch/build" -DCMAKE_C_COMPILER="$cc"
    # CMake breaks lines and indents messages; one blank between words is enough to compare.
    tr -s ' \n' '  ' <"$scratch/err" >"$scratch/words"
    mv "$scratch/words" "$scratch/err"
}

# refuse MESSAGE LINE...: the list with these lines at its end is refused.
refuse() {
    message=$1
    shift
    printf '%s\n' "$@" >>"$list"
    configure
    expect_status 1 "variants.inc with: $*"
    expect_text err "$message"
    cp "$scratch/variants.inc" "$list"
}

configure
expect_status 0 'the list as it is'

refuse "variants.inc lists softmax_f32_scalar_nosuch, but kernels/softmax/softmax_f32_scalar_nosuch.c does not exist" \
    'MHA_VARIANT(softmax, f32, scalar, nosuch)'
refuse "variants.inc lists qk_f32_avx2_nosuch, but kernels/peers/qk_f32_avx2_nosuch.c does not exist" \
    'MHA_PEER(qk, f32, avx2, nosuch)'
refuse "isa.cmake does not know the ISA 'mmx'" 'MHA_VARIANT(softmax, f32, mmx, x)'
refuse "cannot read the line 'MHA_VARIANT(softmax f32, scalar, x)'" 'MHA_VARIANT(softmax f32, scalar, x)'
refuse "cannot read the line 'MHA_VARIANT(softmax, f32, scalar, x) // remark'" \
    'MHA_VARIANT(softmax, f32, scalar, x) // remark'

touch "$scratch/kernels/softmax/softmax_f32_scalar_twice.c"
line='MHA_VARIANT(softmax, f32, scalar, twice)'
refuse 'variants.inc lists softmax_f32_scalar_twice twice' "$line" "$line"
refuse 'kernels/softmax/softmax_f32_scalar_twice.c is not listed in kernels/variants.inc' '// no line of its own'
printf '%s\n' "$line" >>"$list"
configure
expect_status 0 'the new file with its line'
