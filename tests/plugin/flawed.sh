#!/bin/sh
# Plug-ins that are wrong: each is refused in one line that names the file and the fault, with exit
# code 2 and nothing on stdout.
# usage: flawed.sh PROGRAM CC KERNELS FOREIGN-ISA
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 cc=$2 kernels=$3 foreign=$4

# build NAME [-D...]: makes $scratch/NAME.so.
build() {
    name=$1
    shift
    run "$cc" -O1 -shared -fPIC -I "$kernels" "$@" "$here/flawed.c" -o "$scratch/$name.so"
    expect_status 0 "building $name"
}

# one_line TEXT: the last run was refused properly.
one_line() {
    expect_status 2 "$1"
    expect_empty out
    [ "$(wc -l <"$scratch/err")" = 1 ] || {
        show err
        fail "one line was expected: $1"
    }
    expect_text err "$1"
}

# refused TEXT NAME [-D...]: builds a plug-in and expects it to be refused with TEXT.
refused() {
    text=$1
    name=$2
    shift 2
    build "$name" "$@"
    run "$program" list --plugin "$scratch/$name.so"
    one_line "$text"
    expect_text err "$scratch/$name.so"
}

# --- not a library of kernels ---
printf 'no library at all\n' >"$scratch/text.so"
run "$program" list --plugin "$scratch/text.so"
one_line 'text.so'
: >"$scratch/empty.so"
run "$program" list --plugin "$scratch/empty.so"
one_line 'empty.so'
run "$program" list --plugin "$scratch/absent.so"
one_line 'absent.so'
mkdir "$scratch/folder.so"
run "$program" list --plugin "$scratch/folder.so"
one_line 'folder.so'
refused 'does not export mha_kernel_library()' symbol -DSYMBOL=another_symbol
refused 'returned NULL' null -DRESULT=NULL
refused 'was built for ABI version 99' version -DABI=99
refused 'a descriptor has 8 bytes there' bytes -DKERNEL_BYTES=8
refused 'a library holds 1 to 10000 kernels, here 0' none -DCOUNT=0
refused 'a library holds 1 to 10000 kernels, here 1000000000' many -DCOUNT=1000000000
refused 'an entry without a kernel' entry '-DENTRIES={0,""}'
refused 'its name and version must be short lines' title '-DTITLE="two\nlines"'
refused 'the code hash must be a word' hash '-DHASH="\"\n"'

# --- nonsense in a descriptor ---
refused 'a kernel without a name' no_name -DNAME=0
refused "a kernel's name must be a word" odd_name '-DNAME="concat f32"'
refused 'here concat_f32_scalar_flawed' other_name '-DNAME="concat_f32_scalar_other"'
refused 'op, dtype, isa and tag must be words' no_tag -DTAG=0
refused 'op, dtype, isa and tag must be words' empty_tag '-DTAG=""'
refused "there is no op 'knot'" op '-DNAME="knot_f32_scalar_flawed"' '-DOP="knot"'
refused "there is no dtype 'f80'" dtype '-DNAME="concat_f80_scalar_flawed"' '-DDTYPE="f80"'
refused "there is no ISA 'mmx'" isa '-DNAME="concat_f32_mmx_flawed"' '-DISA="mmx"'
refused 'run is not set' no_run -DRUN=
qk='-DNAME="qk_f32_scalar_flawed" -DOP="qk"'
# shellcheck disable=SC2086 # words
{
    refused 'pack and packed_bytes go together' pack $qk '-DMEMBERS=.pack={.qk=some_pack}'
    refused 'pack and packed_bytes go together' packed $qk '-DMEMBERS=.packed_bytes=some_bytes'
    refused 'does not work in place' in_place $qk '-DMEMBERS=.flags=MHA_FLAG_IN_PLACE'
}
refused 'has nothing to pack' needless '-DMEMBERS=.pack={.qk=some_pack},.packed_bytes=some_bytes'
refused 'create and destroy go together' create '-DMEMBERS=.create=some_create'
refused 'create and destroy go together' destroy '-DMEMBERS=.destroy=some_destroy'
refused 'row_multiple 4000000000' multiple '-DMEMBERS=.row_multiple=4000000000u'
refused 'must be at most 65536' step '-DMEMBERS=.step=4000000000u'
refused 'flags 0x80000000 hold bits that mean nothing' flags '-DMEMBERS=.flags=0x80000000u'
refused 'exp_f32 is for softmax only' exp '-DMEMBERS=.exp_f32=some_exp'
refused 'the summary must be one short line' summary '-DMEMBERS=.summary="\xff"'
refused 'flops_per_step is not set' peak '-DNAME="peak_f32_scalar_flawed"' '-DOP="peak"'

# --- names that exist already ---
refused 'the kernel concat_f32_scalar_loop exists already, in mhabench' ours \
    '-DNAME="concat_f32_scalar_loop"' '-DTAG="loop"'
refused 'the kernel concat_f32_scalar_flawed exists already, in' twice -DCOUNT=2 \
    '-DENTRIES={&kernel,""},{&kernel,""}'
build first
build second
run "$program" list --plugin "$scratch/first.so" --plugin "$scratch/second.so"
one_line "$scratch/second.so: the kernel concat_f32_scalar_flawed exists already, in $scratch/first.so"
run "$program" list --plugin "$scratch/first.so" --plugin "$scratch/first.so"
one_line 'exists already'

# --- code that fails while it is loaded, in every command that loads it ---
crash='its own code failed while it was loaded: signal'
refused "$crash 11" segv_constructor '-DIN_CONSTRUCTOR=*(volatile int*)16=0'
refused "$crash 11" segv_entry '-DIN_ENTRY=*(volatile int*)16=0'
refused "$crash 6" abort_entry '-DIN_ENTRY=abort()'
refused "$crash 11" wild_library '-DRESULT=(const struct mha_library*)16'
refused "$crash 11" wild_name '-DNAME=(const char*)16'
refused 'ended by itself with exit code 0' exit_constructor '-DIN_CONSTRUCTOR=_exit(0)'
for command in check 'run --out none.json'; do
    # shellcheck disable=SC2086 # words
    run "$program" $command --op concat --plugin "$scratch/segv_entry.so"
    one_line "$scratch/segv_entry.so: $crash"
done
build endless '-DIN_ENTRY=for(;;)sleep(1)'
run "$program" list --timeout 1 --plugin "$scratch/endless.so"
one_line 'endless.so: its own code failed while it was loaded: no sign of life for 1 s'

# --- what a plug-in prints does not get into the data ---
problem='--kernel concat_f32_scalar_flawed --batch 1 --heads 2 --seq 5'
mkdir "$scratch/loud" "$scratch/still"
build plug
mv "$scratch/plug.so" "$scratch/still"
build plug '-DIN_CONSTRUCTOR=SAY("from the constructor")' '-DIN_ENTRY=SAY("from the entry")' '-DIN_RUN=SAY("from a run")'
mv "$scratch/plug.so" "$scratch/loud"
for command in list "check $problem"; do
    for kind in still loud; do
        cd "$scratch/$kind"
        # shellcheck disable=SC2086 # words
        run "$program" $command --json --plugin plug.so
        expect_status 0 "$command of a plug-in that prints"
        # The time of the run is all that may differ.
        grep -v '"date"\|"load_avg"' "$scratch/out" >"$scratch/$kind.json"
    done
    expect_text err 'from the constructor'
    expect_text err 'from the entry'
    cmp "$scratch/still.json" "$scratch/loud.json" >&2 || fail "$command: printing shows in the JSON"
done
expect_text err 'from a run'

# --- an ISA that this machine lacks ---
cd "$scratch"
build foreign "-DNAME=\"concat_f32_${foreign}_flawed\"" "-DISA=\"$foreign\""
run "$program" list --kernel '*_flawed' --plugin ./foreign.so
expect_status 77 'list of a plug-in for another CPU'
grep -q "concat_f32_${foreign}_flawed  *not here" "$scratch/out" || fail 'list does not say that it is not here'
run "$program" check --kernel '*_flawed' --plugin ./foreign.so
expect_status 77 'check of a plug-in for another CPU'
expect_text err "concat_f32_${foreign}_flawed needs $foreign"
# A plug-in that is right: what the refusals above did not hang on.
# shellcheck disable=SC2086 # words
run "$program" check $problem --plugin first.so
expect_status 0 'check of a plug-in that is right'
