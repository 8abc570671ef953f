#!/bin/sh
# `mhabench ab` on git revisions: in a small repository that has the target mha_kernels and one kernel.
# usage: revisions.sh PROGRAM INCLUDE-DIR
set -eu
# shellcheck source=tests/common.sh
. "$(dirname "$0")/../common.sh"
program=$1
include=$2
here=$(dirname "$(readlink -f "$0")")
command -v git >/dev/null || skip 'git is not installed'

tree="$scratch/a tree"
mkdir "$tree"
cp "$here/revision.c" "$tree"
cat >"$tree/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.25)
project(only LANGUAGES C)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY \${CMAKE_BINARY_DIR}/bin)
file(STRINGS revision.c rounds REGEX "ROUNDS = ")
string(MD5 hash "\${rounds}")
add_library(mha_kernels SHARED revision.c)
target_include_directories(mha_kernels PRIVATE "$include")
target_compile_definitions(mha_kernels PRIVATE HASH="\${hash}")
TEXT
echo /build/ >"$tree/.gitignore"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
GIT_CONFIG_GLOBAL=/dev/null
GIT_CONFIG_NOSYSTEM=1
export GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM
in_tree() {
    git -C "$tree" -c user.name=test -c user.email=test@example.org "$@" >/dev/null
}
commit() {
    in_tree add -A
    in_tree commit -q -m "$1"
    in_tree tag "$1"
}
in_tree init -q
commit first
sed -i 's|^/// The only|/// The one and only|' "$tree/revision.c"
commit comment
sed -i 's/ROUNDS = 1/ROUNDS = 4/' "$tree/revision.c"
commit slower
sed -i 's/enum { ROUNDS/enum ROUNDS/' "$tree/revision.c"
commit broken

MHABENCH_SOURCE=$tree
export MHABENCH_SOURCE
small='--heads 4 --head-dim 64 --seq 64 --threads 1 --color never'

# shellcheck disable=SC2086 # words
run "$program" ab first comment $small --budget 20
expect_status 0 'an edit of a comment'
expect_text out 'machine code of all 1 rows is identical'

# shellcheck disable=SC2086
run "$program" ab comment slower $small --budget 30
expect_status 1 'four times the work'
grep -q '^SLOWER .* concat/f32/scalar_only/' "$scratch/out" || {
    show out
    fail 'the only kernel is not SLOWER'
}

# Worktrees are used again, whatever was done to them.
commit_id=$(git -C "$tree" rev-parse first)
echo '#error edited' >>"$tree/build/ab/$commit_id/source/revision.c"
# shellcheck disable=SC2086
run "$program" ab first comment $small --budget 10
expect_status 0 'a worktree that was edited'
# One that was deleted by hand is made anew.
rm -r "$tree/build/ab/$commit_id"
# shellcheck disable=SC2086
run "$program" ab first comment $small --budget 10
expect_status 0 'a worktree that was deleted'

# shellcheck disable=SC2086
run "$program" ab first broken $small
expect_status 2 'a revision that does not compile'
expect_text err 'cannot be built'
expect_text err 'build.log'
expect_empty out
run "$program" ab first no-such-branch
expect_status 2 'a revision that does not exist'
expect_text err 'neither a file nor a git revision'
run env MHABENCH_SOURCE="$scratch/gone" "$program" ab first comment
expect_status 2 'sources that are gone'
expect_text err 'which are gone'
mkdir "$scratch/no-repository"
GIT_CEILING_DIRECTORIES=$scratch
export GIT_CEILING_DIRECTORIES
run env MHABENCH_SOURCE="$scratch/no-repository" "$program" ab first comment
expect_status 2 'sources without git'
expect_text err 'is no git repository'
