#!/bin/sh
# Parent and worker under valgrind: no use of memory that nobody has written or that is not theirs. Leaks are
# AddressSanitizer's: a worker ends by _exit(), with everything in place.
# usage: valgrind.sh PROGRAM
set -eu
. "$(dirname "$0")/../common.sh"
program=$1

command -v valgrind >/dev/null || skip 'valgrind is not installed; ./mhabench selftest as root installs it'

# checked WORDS...: the program, clean. A worker with an error ends with 99, which the parent reports.
checked() {
    run valgrind --quiet --trace-children=yes --error-exitcode=99 --leak-check=no "$program" "$@"
    expect_status 0 "valgrind mhabench $*"
    ! grep -q '^==[0-9]*==' "$scratch/err" || {
        show err
        fail 'valgrind has something to say'
    }
}

checked list
# One thread: those of a team wait in turn for a machine that valgrind gives to one at a time.
checked check --op softmax --isa scalar --preset bert --seq 17 --threads 1
