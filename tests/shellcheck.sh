#!/bin/sh
# Every shell script of the project passes shellcheck; the launcher is POSIX sh.
# usage: shellcheck.sh SOURCE
set -eu
. "$(dirname "$0")/common.sh"
command -v shellcheck >/dev/null || skip 'shellcheck is not installed'
cd "$1"
shellcheck --shell=sh mhabench || fail mhabench
shellcheck .ci/run || fail .ci/run
shellcheck --external-sources --source-path=tests tests/*.sh || fail tests
