#!/bin/sh
# The model of one register tile at each ISA level: it sees the loop that was found, and what no processor of the
# model can undercut, the multiply-adds over its pipes, holds.
# usage: inner_loops_model.sh
# CC and CROSS_CC are the compilers.
set -eu
. "$(dirname "$0")/../common.sh"
tool=$(dirname "$0")/inner_loops.sh

command -v "${LLVM_MCA-llvm-mca-19}" >/dev/null || skip 'llvm-mca-19 is not installed (Debian package llvm-19)'

run "$tool" 'sdpa_*'
[ "$status" != 77 ] || skip 'no compiler'
expect_status 0 'the model of sdpa'
awk -F ' *[|] *' '
/^\| `/ {
    rows++
    # Multiply-adds a cycle: two vectors of 8 on Zen 3, one of 16 on Zen 4, two or four of 4 on Neoverse.
    floor = $4 == "znver3" ? 1 / 16 : $4 == "znver4" ? 1 / 16 : $4 == "neoverse-v2" ? 1 / 16 : 1 / 8
    if (!($5 > 0 && $6 > 0 && $12 > 0)) {
        print "not a number in: " $0
        bad = 1
    }
    # Rows have four digits.
    if ($3 == "tile" && $13 < floor - 0.00005) {
        print "faster than the multiply-adds alone: " $0
        bad = 1
    }
    # A loop that waits twice as long as its multiply-adds take is no tile.
    if ($3 == "tile" && $13 > 2 * floor) {
        print "not bound by multiply-adds: " $0
        bad = 1
    }
}
END {
    if (!rows) {
        print "no rows"
        bad = 1
    }
    exit bad
}' "$scratch/out" || {
    show out
    fail 'the table is not what it should be'
}
