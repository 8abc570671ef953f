#!/bin/sh
# Checks object files: what they export and, on x86, that code which runs everywhere has no AVX.
# usage: symbols.sh NM OBJDUMP LIST
#
# LIST holds one `<kind> <file>` a line:
#   kernel    exports one data symbol, named like the file: its descriptor
#   library   exports mha_kernel_library only
#   baseline  holds no VEX or EVEX instruction
set -eu
. "$(dirname "$0")/common.sh"
nm=$1 objdump=$2 list=$3

bad=0
complain() {
    printf '%s\n' "$*" >&2
    bad=1
}

kernels=0 baselines=0
while read -r kind file; do
    case $kind in
        kernel)
            kernels=$((kernels + 1))
            name=${file##*/}
            name=${name%%.*}
            exported=$("$nm" -g --defined-only "$file" | awk '{print $2, $3}' | sort)
            # D and R: writable before relocation, or never.
            case $exported in
                "D $name" | "R $name") ;;
                *) complain "$file exports [$exported], expected the descriptor $name alone" ;;
            esac
            ;;
        library)
            exported=$("$nm" -D --defined-only "$file" | awk '{print $3}' | sort)
            [ "$exported" = mha_kernel_library ] ||
                complain "$file exports [$exported], expected mha_kernel_library alone"
            ;;
        baseline)
            baselines=$((baselines + 1))
            "$objdump" -d "$file" >"$scratch/code"
            grep -q 'elf64-x86-64' "$scratch/code" || continue
            # Every mnemonic of VEX and EVEX begins with v; of the rest only verr and verw do.
            if grep -P '^ *[0-9a-f]+:\t[0-9a-f ]+\tv(?!err|erw)' "$scratch/code" >"$scratch/vex"; then
                complain "$file: AVX in code that must run on every x86-64 CPU:"
                head -n 5 "$scratch/vex" >&2
            fi
            ;;
        *) fail "$list: unknown kind '$kind'" ;;
    esac
done <"$list"

[ -s "$list" ] || fail "$list names no object"
echo "$kernels kernel objects and $baselines baseline objects checked"
exit $bad
