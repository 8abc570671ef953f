# Follows the upper halves of the vector registers through a library for x86-64, as `objdump -t -R` and
# `objdump -d --no-show-raw-insn` show it, one behind the other: prints every function for the outside that
# can return with upper halves that it has written and not cleared (vzeroupper). A function is one for the outside
# if a table of the library holds its address or nothing in the library calls it; the others are parts of
# their callers. A jump through a table is taken to lead to every place that straight code does not reach,
# and every path is taken as possible, whatever the data.
#
# Registers 16 to 31 have no upper halves that vzeroupper would clear (Intel SDM, vol. 2, VZEROUPPER).

function without_zeros(address) {
    sub(/^0+/, "", address)
    return address
}

# The table of symbols: a source file, then its own functions.
$2 == "l" && $3 == "df" {
    source = $NF
}
$2 == "l" && $3 == "F" {
    source_of[without_zeros($1)] = source
}

# A table in the library's data holds an address.
$2 == "R_X86_64_RELATIVE" {
    sub(/.*0x/, "", $3)
    held[without_zeros($3)] = 1
}

# A function begins. One of another library is called through a stub, of which nothing is known.
/^[0-9a-f]+ <.*>:$/ {
    stub = $2 ~ /@plt>:$/
    if (!stub) {
        functions++
        first[functions] = count + 1
        title[functions] = substr($2, 2, length($2) - 3)
        starts[functions] = without_zeros($1)
        function_at[starts[functions]] = functions
    }
    next
}

!stub && /^ *[0-9a-f]+:\t/ {
    split($0, field, "\t")
    address = field[1]
    gsub(/[ :]/, "", address)
    text = field[2]
    sub(/^(bnd|notrack|rep|repz|data16|cs) +/, "", text)
    name = text
    sub(/ .*/, "", name)
    operands = text
    sub(/^[^ ]* */, "", operands)
    sub(/ *[#<].*/, "", operands)
    count++
    at[address] = count
    owner[count] = functions
    kind[count] = "other"
    if (name ~ /^vzero(upper|all)$/) {
        kind[count] = "clear"
    } else if (name ~ /^v/) {
        written = operands
        sub(/.*,/, "", written)
        if (written ~ /^%[yz]mm([0-9]|1[0-5])([^0-9]|$)/) {
            kind[count] = "write"
        }
    } else if (name ~ /^ret/) {
        kind[count] = "return"
    } else if (name ~ /^call/ || name ~ /^j/) {
        kind[count] = name ~ /^call/ ? "call" : name ~ /^jmp/ ? "jump" : "branch"
        target[count] = operands ~ /^\*/ ? "" : operands
    } else if (name ~ /^(nop|xchg|hlt|ud2|int3)/) {
        kind[count] = name ~ /^(hlt|ud2|int3)/ ? "stop" : "nothing"
    }
}

# Puts instruction `i` on the list, reached with its upper halves `dirty` (1) or not (0).
function reach(i, dirty) {
    if (!((i, dirty) in seen)) {
        seen[i, dirty] = 1
        list[++waiting] = i
        state[waiting] = dirty
    }
}

# Notes that function `f`, entered in the state `entry`, can return in the state `dirty`.
function leave(f, entry, dirty) {
    if (!((f, entry, dirty) in exits)) {
        exits[f, entry, dirty] = 1
        changed = 1
    }
}

# Follows function `f` from its first instruction.
function follow(f, entry, i, dirty, to, last, j, out) {
    split("", seen)
    waiting = 0
    last = first[f + 1] - 1
    reach(first[f], entry)
    while (waiting > 0) {
        i = list[waiting]
        dirty = state[waiting]
        waiting--
        if (i > last) {
            continue
        }
        if (kind[i] == "clear") {
            dirty = 0
        } else if (kind[i] == "write") {
            dirty = 1
        } else if (kind[i] == "return") {
            leave(f, entry, dirty)
            continue
        } else if (kind[i] == "stop") {
            continue
        } else if (kind[i] == "call" && target[i] in function_at) {
            to = function_at[target[i]]
            for (out = 0; out < 2; out++) {
                if ((to, dirty, out) in exits) {
                    reach(i + 1, out)
                }
            }
            continue
        } else if ((kind[i] == "jump" || kind[i] == "branch") && target[i] == "") {
            for (j = first[f] + 1; j <= last; j++) {
                if (block[j]) {
                    reach(j, dirty)
                }
            }
        } else if ((kind[i] == "jump" || kind[i] == "branch") && !(target[i] in at)) {
            # Into another library: what is dirty there is its caller's.
            leave(f, entry, dirty)
        } else if (kind[i] == "jump" || kind[i] == "branch") {
            j = at[target[i]]
            if (j >= first[f] && j <= last) {
                reach(j, dirty)
            } else {
                # Into another function, or a part of this one that stands elsewhere.
                to = owner[j]
                for (out = 0; out < 2; out++) {
                    if ((to, dirty, out) in exits) {
                        leave(f, entry, out)
                    }
                }
            }
        }
        if (kind[i] != "jump") {
            reach(i + 1, dirty)
        }
    }
}

END {
    first[functions + 1] = count + 1
    for (i = 1; i <= count; i++) {
        if (target[i] != "" && target[i] in at) {
            used[owner[i] != owner[at[target[i]]] ? owner[at[target[i]]] : 0] = 1
            if (kind[i] != "call") {
                led_to[at[target[i]]] = 1
            }
        }
    }
    # The blocks that a table may lead to: behind an end of straight code, and no branch leads there.
    for (i = 2; i <= count; i++) {
        j = i - 1
        while (kind[j] == "nothing" && owner[j] == owner[i]) {
            j--
        }
        block[i] = kind[i] != "nothing" && !led_to[i] &&
                   (kind[j] == "jump" || kind[j] == "return" || kind[j] == "stop")
    }
    do {
        changed = 0
        for (f = 1; f <= functions; f++) {
            follow(f, 0)
            follow(f, 1)
        }
    } while (changed)
    for (f = 1; f <= functions; f++) {
        if (((f, 0, 1) in exits) && (held[starts[f]] || !used[f])) {
            printf "%s of %s, at %s\n", title[f], source_of[starts[f]], starts[f]
            status = 1
        }
    }
    printf "%d functions, %d instructions\n", functions, count
    exit status || count == 0
}
