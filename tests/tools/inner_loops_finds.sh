#!/bin/sh
# Proves that inner_loops.sh finds what it looks for, in a tile with one planted fault at a time, and that its
# model sees the whole loop.
# usage: inner_loops_finds.sh CC
set -eu
. "$(dirname "$0")/../common.sh"
here=$(dirname "$0")
cc=$1

case $("$cc" -dumpmachine) in
    x86_64*) ;;
    *) skip 'the planted tiles are AVX2 code' ;;
esac

# planted STATUS ROWS FAULT TEXT
planted() {
    run env CC="$cc -DROWS=$2 -DFAULT=$3" "$here/inner_loops.sh" --check --file "$here/planted_tile.c" tile avx2 "$2x32"
    expect_status "$1" "a tile of $2 rows, fault $3"
    if [ "$1" = 0 ]; then
        expect_empty err
    else
        expect_text err "$4"
    fi
}
planted 0 3 0
# Twenty accumulators in sixteen registers.
planted 1 5 0 'vectors on the stack in the tile loop: too many for the registers'
planted 1 3 1 'vzeroupper in the tile loop'
planted 1 3 2 'no tile loop found'
planted 1 3 3 'loads in 1 steps of depth, expected 7 each'
planted 1 3 4 'no tile loop found'

# The shape that the tag promises is not the one that was compiled.
run env CC="$cc -DROWS=3 -DFAULT=0" "$here/inner_loops.sh" --check --file "$here/planted_tile.c" tile avx2 4x32
expect_status 1 'a tile of 3 rows under the tag 4x32'
expect_text err '12 multiply-adds in the loop, expected a multiple of 16'

# few STATUS FAULT RULE [TEXT]
few() {
    run env CC="$cc -DFAULT=$2" "$here/inner_loops.sh" --check --file "$here/planted_few.c" "$3" avx2 3x32
    expect_status "$1" "$3, fault $2"
    [ "$1" = 0 ] || expect_text err "$4"
}
few 0 0 dots_2
few 1 1 dots_2 '4 multiply-adds load what another one has in the dots_2 loop'
few 1 0 dots_4 'no dots_4 loop found'

run "$here/inner_loops.sh" --check --isa avx2 no_such_kernel
expect_status 1 'a kernel that is not there'
run env LLVM_MCA=no-such-program "$here/inner_loops.sh" --isa avx2
expect_status 77 'without llvm-mca'
expect_text err 'no-such-program is not installed'
