#!/bin/sh
# Checks the machine code of libraries: no function of theirs may return with the upper halves of the
# vector registers dirty, on any of its paths. `check` sees those paths that it runs, on this CPU; this
# one sees all of them, and the kernels of ISAs which this CPU lacks.
# usage: uppers.sh OBJDUMP LIBRARY...
set -eu
. "$(dirname "$0")/common.sh"
objdump=$1
shift

bad=0
for library in "$@"; do
    # Together, -d would leave out what -R shows of the data.
    "$objdump" -t -R "$library" >"$scratch/code"
    "$objdump" -d --no-show-raw-insn "$library" >>"$scratch/code"
    grep -q 'elf64-x86-64' "$scratch/code" || skip "$library is not for x86-64"
    if awk -f "$(dirname "$0")/uppers.awk" "$scratch/code" >"$scratch/found"; then
        echo "$library: $(cat "$scratch/found")"
    else
        echo "$library: returns with dirty upper halves (vzeroupper is missing):" >&2
        cat "$scratch/found" >&2
        bad=1
    fi
done
exit $bad
