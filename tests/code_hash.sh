#!/bin/sh
# The hash of a kernel's machine code: unmoved by comments and names, moved by whatever is executed or
# read.
# usage: code_hash.sh TOOL CC SOURCE
set -eu
. "$(dirname "$0")/common.sh"
tool=$1 cc=$2 source=$3

# hash_of FILE.c: prints the hash of its release build, which is always built under the same name.
hash_of() {
    mkdir -p "$scratch/build"
    cp "$1" "$scratch/build/kernel.c"
    (cd "$scratch/build" &&
        "$cc" -std=c11 -O3 -DNDEBUG -fPIC -fvisibility=hidden -D_GNU_SOURCE -I"$source/kernels" -c kernel.c -o kernel.c.o &&
        "$tool" entries.inc kernel.c.o) || fail "cannot hash $1"
    line=$(cat "$scratch/build/entries.inc")
    case $line in
        'MHA_ENTRY(kernel, "'????????????????'")') ;;
        *) fail "unexpected entry: $line" ;;
    esac
    line=${line#*\"}
    printf '%s\n' "${line%\"*}"
}

same() {
    a=$(hash_of "$1") && b=$(hash_of "$2") || exit
    [ "$a" = "$b" ] || fail "$3 changed the hash: $a, then $b"
}

differ() {
    a=$(hash_of "$1") && b=$(hash_of "$2") || exit
    [ "$a" != "$b" ] || fail "$3 did not change the hash $a"
}

# vary NAME SED-SCRIPT: makes NAME.c of base.c; refuses a script that changes nothing.
vary() {
    sed "$2" "$scratch/base.c" >"$scratch/$1.c"
    ! cmp -s "$scratch/base.c" "$scratch/$1.c" || fail "the change '$1' changes nothing"
}

cat >"$scratch/base.c" <<'TEXT'
#include <assert.h>
extern float first(float), second(float);
static const float table[5] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f};
float run(const float *x, int i) {
    assert(x != 0);
    return first(table[i & 3] * x[i]) + 3.0f;
}
float (*const entry)(const float *, int) = run;
TEXT
vary comment 's,^    return,    // longer by\n    // two lines\n    return,'
vary renamed 's/table/values/g'
vary constant 's/3\.0f/3.5f/'
vary data 's/4\.0f/5.0f/'
vary callee 's/return first/return second/'
vary operation 's/\* x\[i\]/+ x[i]/'
same "$scratch/base.c" "$scratch/comment.c" 'a comment'
same "$scratch/base.c" "$scratch/renamed.c" 'the name of a static table'
differ "$scratch/base.c" "$scratch/constant.c" 'a constant in the code'
differ "$scratch/base.c" "$scratch/data.c" 'a constant in a table'
differ "$scratch/base.c" "$scratch/callee.c" 'another function called'
differ "$scratch/base.c" "$scratch/operation.c" 'another operation'

# A kernel of ours, as it stands.
for kernel in "$source"/kernels/softmax/softmax_f32_scalar_*.c; do
    [ -e "$kernel" ] || fail "no scalar softmax kernel in $source/kernels"
    { echo '// one line more'; cat "$kernel"; echo '/* and one at the end */'; } >"$scratch/commented.c"
    same "$kernel" "$scratch/commented.c" "a comment in $kernel"
done

run "$tool" "$scratch/entries.inc" "$scratch/base.c"
expect_status 2 'a file that is no object'
expect_text err "$scratch/base.c is not an ELF64 object"
