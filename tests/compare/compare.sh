#!/bin/sh
# `mhabench compare` and `report` as a user calls them: exit codes, gates, forms, where they go.
# usage: compare.sh MHABENCH TEST_COMPARE [EMULATOR...]
set -eu
. "$(dirname "$0")/../common.sh"

program=$1
maker=$2
shift 2
files=$scratch/files
mkdir "$files"
"$@" "$maker" make "$files"
emulator=$*

# bench WORD...: runs `mhabench WORD...` in the folder of the files.
bench() {
    # shellcheck disable=SC2086 # the emulator's words
    run in_files $emulator "$program" "$@"
}
in_files() {
    (cd "$files" && "$@")
}

# --- verdicts and exit codes
bench compare base.json same.json
expect_status 0 "nothing changed"
expect_empty err
expect_text out "3 cases: 3 SAME"
bench compare base.json slower.json
expect_status 1 "18 % slower"
expect_text out "SLOWER         +18."
expect_text out "1 SLOWER, 2 SAME"
bench compare base.json faster.json
expect_status 0 "faster"
expect_text out "FASTER"
bench compare base.json missing.json
expect_status 1 "a case is missing"
expect_text out "MISSING"
bench compare missing.json base.json
expect_status 0 "a case is new"
expect_text out "NEW"
bench compare base.json failed.json
expect_status 1 "a kernel failed its check"
expect_text out "new: FAILED"
bench compare base.json drift.json
expect_status 0 "the machine code is the same"
expect_text out "ENV-DRIFT"
expect_text out "noise floor: up to 18."
bench compare base.json few.json
expect_status 0 "two launches do not tell"
expect_text out "INCONCLUSIVE"
expect_text out "a spread of 5.0 % between launches is added"

# --- gates and floors
bench compare base.json few.json --gate inconclusive
expect_status 3 "inconclusive, and the gate is on it"
bench compare base.json slower.json --gate inconclusive
expect_status 1 "a regression comes before what is inconclusive"
bench compare base.json slower.json --gate none
expect_status 0 "no gate"
expect_text out "SLOWER"
bench compare base.json slower.json --floor 25
expect_status 0 "below the floor"
expect_text out "3 SAME"
bench compare base.json few.json --launch-floor 0.1
expect_status 1 "5 % stand out where no spread between launches is assumed"
expect_text out "a spread of 0."

# --- what is refused
bench compare base.json other_cpu.json
expect_status 2 "another machine"
expect_empty out
expect_text err 'cpu: "Some CPU" in the base, "Other CPU" in the new one'
bench compare base.json other_cpu.json --relative
expect_status 0 "another machine, relative to its scalar kernels"
expect_text out 'note: cpu: "Some CPU"'
expect_text out "2 cases: 2 SAME"
for words in "compare" "compare base.json" "compare base.json same.json slower.json" "report" "report base.json same.json" \
    "compare base.json same.json --gate never" "compare base.json same.json --floor 101" \
    "compare base.json same.json --floor -1" "compare base.json same.json --floor 1%" \
    "compare base.json same.json --markdown --json" "report base.json --relative" \
    "compare base.json same.json --markdown --max-chars 10" "compare base.json none.json" "report none.json" \
    "compare base.json same.json --markdown --out none/report.md" "compare base.json ."; do
    # shellcheck disable=SC2086 # words
    bench $words
    expect_status 2 "$words"
    expect_empty out
    [ "$(wc -l <"$scratch/err")" -eq 1 ] || {
        show err
        fail "not one line: $words"
    }
done
head -c 2000 "$files/base.json" >"$files/truncated.json"
: >"$files/empty.json"
for file in truncated empty; do
    bench compare base.json $file.json
    expect_status 2 "$file"
    expect_text err "$file.json: line"
    bench report $file.json
    expect_status 2 "report of $file"
done

# --- forms, and where they go
for form in json markdown junit github-action-benchmark; do
    bench compare base.json slower.json --$form
    expect_status 1 "--$form"
    [ -s "$scratch/out" ] || fail "--$form prints nothing"
    mv "$scratch/out" "$scratch/direct"
    bench compare base.json slower.json --$form --out "$scratch/file"
    expect_status 1 "--$form --out"
    expect_empty out
    cmp "$scratch/direct" "$scratch/file" || fail "--out differs from stdout: --$form"
    # What was saved as JSON prints the same.
    bench compare base.json slower.json --json --out "$scratch/saved.json"
    bench report "$scratch/saved.json" --$form
    expect_status 0 "report --$form"
    cmp "$scratch/direct" "$scratch/out" || fail "a saved comparison prints something else: --$form"
    bench report slower.json --$form
    expect_status 0 "report of a result, --$form"
    [ -s "$scratch/out" ] || fail "report --$form prints nothing"
done
bench report "$scratch/saved.json"
expect_status 0 "report of a comparison"
expect_text out "1 SLOWER, 2 SAME"
bench report base.json
expect_status 0 "report of a result"
expect_text out "3 cases: 3 PASSED"
bench report base.json --out "$scratch/table"
expect_status 0 "report --out"
grep -q "3 cases: 3 PASSED" "$scratch/table" || fail "no table in --out"
bench compare base.json slower.json --color always
expect_text out "$(printf '\033[1;31mSLOWER')"
if [ -c /dev/full ]; then
    status=0
    # shellcheck disable=SC2086 # the emulator's words
    in_files $emulator "$program" compare base.json same.json --markdown >/dev/full 2>"$scratch/err" || status=$?
    expect_status 2 "a full device"
fi
for command in compare report; do
    bench $command --help
    expect_status 0 "$command --help"
    expect_text out "--github-action-benchmark"
done
