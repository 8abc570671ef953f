# shellcheck shell=sh
# What the test scripts share: a scratch folder, and checks that say what they expected.

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

skip() {
    printf 'skipped: %s\n' "$*" >&2
    exit 77
}

# run COMMAND...: keeps the exit code in $status, the output in $scratch/out and $scratch/err.
run() {
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" </dev/null || status=$?
}

show() {
    printf -- '--- %s\n' "$1" >&2
    cat "$scratch/$1" >&2
}

expect_status() {
    [ "$status" = "$1" ] || {
        show out
        show err
        fail "exit code $status, expected $1: $2"
    }
}

# expect_text FILE TEXT: the file of the last run holds a line with that text.
expect_text() {
    grep -qF -- "$2" "$scratch/$1" || {
        show "$1"
        fail "std$1 lacks: $2"
    }
}

expect_no_text() {
    ! grep -qF -- "$2" "$scratch/$1" || {
        show "$1"
        fail "std$1 holds: $2"
    }
}

expect_empty() {
    [ ! -s "$scratch/$1" ] || {
        show "$1"
        fail "std$1 should be empty"
    }
}
