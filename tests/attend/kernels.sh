#!/bin/sh
# attend shows what its kernels compute: another kernel, another picture; and one that is wrong, crashes
# or hangs is named.
# usage: kernels.sh PROGRAM ATTEND_WEIGHTS CC KERNELS
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../common.sh"
program=$1 weights=$2 cc=$3 kernels=$4
cd "$scratch"

# build FAULT
build() {
    rm -f broken.so
    run "$cc" -O2 -shared -fPIC -D"$1" -I "$kernels" "$here/broken_qk.c" -o broken.so
    expect_status 0 "building $1"
}

attend() {
    run "$program" attend 'I saw the movie' --plugin ./broken.so --with qk=qk_f32_scalar_broken "$@"
}

run "$program" attend 'I saw the movie' --json
cp out right

# The plug-in without a fault shows the same.
build RIGHT
attend --json
expect_status 0 'a right plug-in'
expect_text out qk_f32_scalar_broken
for head in previous-token positional identity semantic seed-previous-token; do
    "$weights" $head sums <out || fail "$head"
done
"$weights" seed-previous-token percent 80 10 5 5 70 20 5 5 10 75 10 5 5 10 75 10 <out || fail 'a right plug-in'

# Keys in reverse order: the picture is reversed, every row of it still sums to 1.
build REVERSED
attend --json
expect_status 1 'a wrong plug-in'
expect_text err 'FAILED'
expect_text err 'qk_f32_scalar_broken'
"$weights" seed-previous-token percent 5 5 10 80 5 5 20 70 5 10 75 10 10 75 10 5 <out || fail 'reversed keys are not shown'
! "$weights" previous-token largest 1 <out 2>err || fail 'previous-token is as before'
"$weights" previous-token sums <out || fail 'reversed: sums'
attend --head seed-previous-token
expect_status 1 'a wrong plug-in, as text'
grep -Eq '^I +5 +5 +10 +80$' out || fail 'reversed keys are not shown as text'

# Without --with a plug-in is not taken.
run "$program" attend 'I saw the movie' --plugin ./broken.so --json
expect_status 0 'a plug-in that is not named'
cmp -s out right || fail 'a plug-in that is not named changes what is shown'

# Nothing written is nothing shown.
build SILENT
attend --head identity
expect_status 1 'a silent plug-in'
expect_text out nan

build CRASHES
attend
expect_status 1 'a plug-in that crashes'
expect_text err 'CRASHED previous-token: qk_f32_scalar_broken: signal'

build HANGS
attend --timeout 1
expect_status 1 'a plug-in that hangs'
expect_text err 'TIMEOUT previous-token: qk_f32_scalar_broken: no sign of life'
