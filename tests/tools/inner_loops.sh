#!/bin/sh
# The inner loops of the hand-written f32 kernels, as the compiler wrote them: counted, and put into
# llvm-mca's model of a processor. The sources carry no markers, which would change the code and which
# llvm-mca overlooks in silence: the loop is found by its backward branch, and nothing else is put in.
#
# usage: inner_loops.sh [--check] [--isa ISA] [KERNEL]...
#        inner_loops.sh --check --file FILE.c RULE ISA TAG
#
#   --check   no model; a loop that is not what its kernel's tag says, or that has a stack access or a
#             vzeroupper, is an error
#   --isa     avx2, avx512 or neon; default: all
#   KERNEL    full names or globs; default: all
#   --file    one file that is in no list
#
# Without --check prints a table in Markdown. Exit code: 0; 1 a loop is not as it should be; 77 a compiler or
# llvm-mca is missing. Environment: CC and CROSS_CC (for NEON) are the compilers, with
# options if need be, LLVM_MCA the model.
set -eu
here=$(dirname -- "$(readlink -f -- "$0")")
. "$here/../common.sh"
root=$here/../..
kernels=$root/kernels

# The flags of a release build; those of the ISA come from isa.cmake, where alone they stand.
flags="-std=c11 -O3 -DNDEBUG -D_GNU_SOURCE -fPIC -fvisibility=hidden -ffp-contract=off
    -falign-loops=64 -I$kernels"
isa_flags() {
    sed 's/#.*//' "$kernels/isa.cmake" | tr '\n' ' ' |
        sed -n "s/.*mha_isa($1 \"[^\"]*\" \([^)]*\)).*/\1/p"
}

# llvm-mca's models, each one of the processor that it is named after: many names stand for another's.
processors_of() {
    case $1 in
        avx2) echo znver3 ;;
        avx512) echo znver4 ;;
        neon) echo neoverse-n1 neoverse-n2 neoverse-v2 ;;
    esac
}

compiler_of() {
    case $1:$(uname -m) in
        neon:aarch64) echo "${CC-cc}" ;;
        neon:*) echo "${CROSS_CC-aarch64-linux-gnu-gcc}" ;;
        *:x86_64) echo "${CC-cc}" ;;
    esac
}

# Which loops of a kernel are looked at:
#   tile  most multiply-adds, no store: the step of depth of a register tile
#   map   most multiply-adds, with a store: what is computed of every element
#   copy  most stores, no multiply-add
# and beside those, where no model is asked for:
#   dots_4, dots_2, axpys_4, axpys_2  most multiply-adds of the function of this name: a row of K or V for so many
#         queries
rules_of() {
    case $1:$2 in
        *:autovec* | *:nt) ;;
        sdpa:*x*) echo tile map ;;
        *:*[0-9]x[0-9]*) echo tile ;;
        softmax:* | rope:* | bias:*) echo map ;;
        concat:*) echo copy ;;
    esac
}

few_rules_of() {
    case $1:$2 in
        qk:*x*) echo dots_4 dots_2 ;;
        pv:*x*) echo axpys_4 axpys_2 ;;
        sdpa:*x*) echo dots_4 dots_2 axpys_4 axpys_2 ;;
    esac
}

# extract RULE ISA FILE.s: writes the instructions of the loop to $scratch/body and prints its counts:
#   instructions multiply-adds loads stores lanes spills reloads vzeroupper operands
# Loads and stores are those of vectors (a broadcast is one) in registers: ldp is two. Spills are vectors on
# the stack, reloads scalars there or elsewhere in memory, operands those loads that are part of a multiply-add. A loop
# is innermost if none begins within it.
# What holds ret, or a jump without condition before its end, is no loop but a block moved out of the way.
extract() {
    awk -v rule="$1" -v arm="$([ "$2" = neon ] && echo 1 || echo 0)" -v body="$scratch/body" '
    function is_branch(text) {
        return arm ? text ~ /^(b|b\.?(eq|ne|cs|cc|mi|pl|vs|vc|hi|hs|lo|ls|ge|lt|gt|le|any|none)|cbn?z|tbn?z)\t/ : text ~ /^j/
    }
    function is_jump(text) {
        return arm ? text ~ /^b\t/ : text ~ /^jmp/
    }
    # The registers of a load or store of ARM.
    function registers(text,   list) {
        if (text ~ /^(ldn?p|stn?p)\t/) {
            return 2
        }
        if (!match(text, /{[^}]*}/)) {
            return 1
        }
        list = substr(text, RSTART, RLENGTH)
        return gsub(/v[0-9]+/, "", list)
    }
    function count(i,   text, to_memory) {
        text = code[i]
        instructions++
        if (text ~ /^fml[as]\t/ || text ~ /^vfn?m(add|sub)[0-9]+ps/) {
            fmas++
        }
        if (text ~ /^vzeroupper/) {
            zeroes++
        }
        if (arm) {
            if (text !~ /^(ld|st)/) {
                return
            }
            if (text !~ /\t{?[qv][0-9]/) {
                reloads++
                return
            }
            if (text ~ /\[(sp|x29)[],]/) {
                spills += registers(text)
            } else if (text ~ /^ld/) {
                loads += registers(text)
            } else {
                stores += registers(text)
            }
            return
        }
        if (text ~ /%zmm/) {
            lanes = 16
        } else if (text ~ /%ymm/ && lanes < 8) {
            lanes = 8
        }
        if (text !~ /\(/ || text ~ /^(lea|prefetch|nop)/) {
            return
        }
        if (text !~ /%[xyz]mm/ || text ~ /^vmovs[sd]\t/) {
            reloads++
            return
        }
        if (text ~ /%rsp/ || (framed[i] && text ~ /%rbp/)) {
            spills++
        } else if (text ~ /\)({%k[0-7]})?$/) {
            stores++
        } else {
            loads++
            operands += text ~ /^vfn?m(add|sub)[0-9]+ps/
        }
    }
    function count_all(first, last,   i) {
        instructions = fmas = loads = stores = spills = reloads = zeroes = operands = 0
        lanes = 4
        for (i = first; i <= last; i++) {
            count(i)
        }
    }
    {
        # What begins a comment on one processor begins a number on the other.
        if (arm) {
            sub(/[ \t]*\/\/.*/, "")
        } else {
            sub(/[ \t]*#.*/, "")
        }
        sub(/[ \t]+$/, "")
    }
    /^[^ \t].*:$/ {
        name = substr($0, 1, length($0) - 1)
        if (name !~ /^\.L/) {
            frame = 0
            part = name
        }
        label[name] = n + 1
        next
    }
    /^[ \t]+[^. \t]/ {
        sub(/^[ \t]+/, "")
        sub(/[ \t]+/, "\t")
        code[++n] = $0
        if (!arm && $0 ~ /^movq?\t%rsp, *%rbp/) {
            frame = 1
        }
        framed[n] = frame
        part_of[n] = part
        if (is_branch($0)) {
            target[n] = $0
            sub(/.*[ \t,]/, "", target[n])
        }
    }
    END {
        for (i = 1; i <= n; i++) {
            if (i in target && target[i] in label && label[target[i]] <= i) {
                last_of[label[target[i]]] = i
            }
        }
        best = 0
        for (first = 1; first <= n; first++) {
            if (!(first in last_of)) {
                continue
            }
            last = last_of[first]
            inner = 1
            for (i = first; i <= last && inner; i++) {
                if (i > first && i in last_of) {
                    inner = 0
                }
                if (code[i] ~ /^ret/) {
                    inner = 0
                }
                if (is_jump(code[i]) && i < last) {
                    inner = 0
                }
            }
            if (!inner) {
                continue
            }
            count_all(first, last)
            score = rule == "copy" ? (fmas ? 0 : stores) : rule == "map" ? (stores ? fmas : 0) : stores ? 0 : fmas
            if (rule ~ /_[0-9]$/ && part_of[first] != rule) {
                score = 0
            }
            # Tiles of the edges may have as many multiply-adds; the kernel is named after the one of fewest loads.
            # Other loops have a longer form of themselves, for scores that are far from 0.
            cost = rule == "tile" ? loads : instructions
            if (score > best || (best && score == best && cost < least)) {
                best = score
                least = cost
                best_first = first
                best_last = last
            }
        }
        if (!best) {
            exit 1
        }
        count_all(best_first, best_last)
        for (i = best_first; i <= best_last; i++) {
            print "\t" code[i] >body
        }
        print instructions, fmas, loads, stores, lanes, spills, reloads, zeroes, operands
    }' "$3"
}

bad=0
complain() {
    printf '%s\n' "$*" >&2
    bad=1
}

# compare NAME RULE ISA TAG: the counts of the last loop beside what the tag promises.
compare() {
    [ "$spills" = 0 ] || complain "$1: $spills vectors on the stack in the $2 loop: too many for the registers"
    case $2 in
        # Rows are reached by offsets, of which there may be more than registers; NEON loads weights as scalars.
        tile | *_[0-9]) ;;
        *) [ "$reloads" = 0 ] || complain "$1: $reloads scalars are read or written in the $2 loop" ;;
    esac
    [ "$zeroes" = 0 ] || complain "$1: vzeroupper in the $2 loop"
    case $2 in
        tile)
            # .. MR x NR: a step of depth is MR x NR / lanes multiply-adds. It loads NR / lanes vectors of the
            # panel and broadcasts MR elements; NEON loads those as vectors along depth instead.
            size=${4##*_}
            mr=${size%x*}
            nr=${size#*x}
            step=$((mr * nr / lanes))
            steps=$((fmas / step))
            [ $((fmas % step)) = 0 ] ||
                complain "$1: $fmas multiply-adds in the loop, expected a multiple of $step"
            per_step=$((mr + nr / lanes))
            [ "$3" != neon ] || per_step=$((mr / lanes + nr / lanes))
            [ "$loads" = $((per_step * steps)) ] ||
                complain "$1: $loads loads in $steps steps of depth, expected $per_step each"
            ;;
        *_[0-9])
            # Every vector that is loaded serves several multiply-adds.
            [ "$operands" = 0 ] || complain "$1: $operands multiply-adds load what another one has in the $2 loop"
            ;;
        copy)
            [ "$loads" = "$stores" ] || complain "$1: $loads loads and $stores stores in a loop that copies"
            ;;
    esac
}

# compile FILE ISA
compile() {
    # shellcheck disable=SC2046,SC2086 # lists of words
    $(compiler_of "$2") $flags $(isa_flags "$2") -S -o "$scratch/code.s" "$1"
}

# find_loop NAME RULE ISA
find_loop() {
    counts=$(extract "$2" "$3" "$scratch/code.s") || {
        complain "$1: no $2 loop found"
        return 1
    }
    read -r instructions fmas loads stores lanes spills reloads zeroes operands <<TEXT
$counts
TEXT
}

iterations=1000

# model NAME RULE ISA PROCESSOR: appends a row to $scratch/rows, its name first.
model() {
    triple=x86_64-linux-gnu
    [ "$3" != neon ] || triple=aarch64-linux-gnu
    "$mca" -mtriple=$triple -mcpu="$4" -iterations=$iterations "$scratch/body" >"$scratch/model" 2>"$scratch/err" || {
        show err
        fail "$1: $mca does not take the loop"
    }
    # An element is a multiply-add of a tile, else an element of the output.
    elements=$((stores * lanes))
    [ "$2" != tile ] || elements=$((fmas * lanes))
    awk -v name="$1" -v rule="$2" -v cpu="$4" -v elements=$elements -v iterations=$iterations \
        -v instructions="$instructions" -v fmas="$fmas" -v loads="$loads" -v stores="$stores" \
        -v reloads="$reloads" '
    /^Instructions:/ { analysed = $2 }
    /^Total Cycles:/ { cycles = $3 / iterations }
    /^Total uOps:/ { uops = $3 / iterations }
    /^Dispatch Width:/ { width = $3 }
    /^\[[0-9.]+\] *- / { resource[++resources] = $NF }
    /^Resource pressure per iteration:/ {
        getline
        getline
        for (i = 1; i <= NF; i++) {
            if ($i + 0 > most + 0) {
                most = $i
                busiest = resource[i]
            }
        }
    }
    END {
        if (analysed != instructions * iterations) {
            printf "%s: %s of %s instructions were analysed\n", name, analysed, instructions * iterations >"/dev/stderr"
            exit 1
        }
        front = uops / width
        limit = most > front ? most : front
        what = most > front ? busiest : "dispatch"
        # Nothing is busy all the time: what is waited for are results.
        if (limit < 0.9 * cycles) {
            what = "latency; " what
        }
        printf "%s\t%s | %s | %d | %d | %d | %d | %d | %d | %.0f | %.2f | %.4f | %.3f | %s %.0f %%\n", name, rule, cpu,
            elements, instructions, fmas, loads, stores, reloads, uops, cycles, cycles / elements, instructions / elements,
            what, 100 * limit / cycles
    }' "$scratch/model" >>"$scratch/rows" || fail "the model did not see the loop that was found"
}

check=no isas='avx2 avx512 neon'
while [ $# -gt 0 ]; do
    case $1 in
        --check) check=yes ;;
        --isa)
            isas=${2?--isa needs an ISA}
            shift
            ;;
        --file)
            compile "$2" "$4"
            ! find_loop "$2" "$3" "$4" || compare "$2" "$3" "$4" "$5"
            exit $bad
            ;;
        -*) fail "unknown option $1" ;;
        *) break ;;
    esac
    shift
done

mca=${LLVM_MCA-llvm-mca-19}
if [ $check = no ]; then
    command -v "$mca" >/dev/null || skip "$mca is not installed (Debian package llvm-19); --check does without"
fi

listed() {
    [ $# -gt 1 ] || return 0
    name=$1
    shift
    for pattern; do
        # shellcheck disable=SC2254 # globs are meant
        case $name in
            $pattern) return 0 ;;
        esac
    done
    return 1
}

: >"$scratch/rows"
loops=0 missing=
for isa in $isas; do
    compiler=$(compiler_of "$isa")
    if [ -z "$compiler" ] || ! command -v "${compiler%% *}" >/dev/null; then
        missing="$missing${missing:+, }${compiler:-a compiler} for $isa"
        continue
    fi
    sed -n "s/^MHA_VARIANT(\([a-z_]*\), f32, $isa, \([a-z0-9_]*\))\$/\1 \2/p" "$kernels/variants.inc" >"$scratch/list"
    while read -r op tag; do
        kernel=${op}_f32_${isa}_$tag
        rules=$(rules_of "$op" "$tag")
        [ $check = no ] || rules="$rules $(few_rules_of "$op" "$tag")"
        if [ -z "$rules" ] || ! listed "$kernel" "$@"; then
            continue
        fi
        compile "$kernels/$op/$kernel.c" "$isa"
        for rule in $rules; do
            loops=$((loops + 1))
            find_loop "$kernel" "$rule" "$isa" || continue
            [ $check = no ] || {
                compare "$kernel" "$rule" "$isa" "$tag"
                echo "$kernel $rule: $instructions instructions, $fmas multiply-adds of $lanes, $loads loads, $stores stores, $reloads scalars from memory"
                continue
            }
            for processor in $(processors_of "$isa"); do
                model "$kernel" "$rule" "$isa" "$processor"
            done
        done
    done <"$scratch/list"
done
[ -z "$missing" ] || printf 'without %s\n' "$missing" >&2
[ $loops -gt 0 ] || {
    [ -z "$missing" ] || skip "without $missing"
    fail 'no kernel has such a name'
}

if [ $check = no ]; then
    echo '| kernels | loop | model of | elements | instructions | FMA | loads | stores | scalars | uops | cycles | cycles / element | instructions / element | busiest |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|'
    # Kernels whose loops are alike, as those of one register tile, share a row.
    awk -F '\t' '
    !($2 in names) { order[++n] = $2 }
    { names[$2] = names[$2] (names[$2] ? ", " : "") "`" $1 "`" }
    END {
        for (i = 1; i <= n; i++) {
            print "| " names[order[i]] " | " order[i] " |"
        }
    }' "$scratch/rows"
fi
exit $bad
