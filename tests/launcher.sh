#!/bin/sh
# The launcher, in a scratch tree, with stand-ins for apt, dpkg, cmake and ctest that note how they were
# called. Nothing is installed or built.
# usage: launcher.sh SOURCE
set -eu
. "$(dirname "$0")/common.sh"
source=$1

tree="$scratch/a tree"
bin=$scratch/bin
calls=$scratch/calls
packages=$scratch/packages
mkdir "$tree" "$bin"
cp "$source/mhabench" "$source/CMakePresets.json" "$tree"

# The launcher sees these tools, the stand-ins and nothing else: no sudo unless a case adds it.
for tool in sh cat chmod cp dirname echo env find flock grep mkdir nproc readlink rmdir sed sleep touch tr xargs; do
    path=$(env which "$tool") || fail "$tool is not installed"
    ln -s "$path" "$bin/$tool"
done

# stand_in NAME: its body comes from stdin.
stand_in() {
    { printf '#!/bin/sh\n'; cat; } >"$bin/$1"
    chmod +x "$bin/$1"
}
export CALLS="$calls" PACKAGES="$packages" SCRATCH="$scratch"
stand_in dpkg <<'TEXT'
case $1 in
    --print-architecture) cat "$SCRATCH/architecture" ;;
    --print-foreign-architectures) cat "$SCRATCH/foreign" ;;
    *) echo "dpkg $*" >>"$CALLS" ;;
esac
TEXT
stand_in dpkg-query <<'TEXT'
cat "$PACKAGES"
exit 1
TEXT
stand_in id <<'TEXT'
cat "$SCRATCH/uid"
TEXT
stand_in apt-get <<'TEXT'
[ ! -e "/proc/$$/fd/9" ] || echo 'inherited the lock' >>"$CALLS"
echo "apt-get $* DEBIAN_FRONTEND=$DEBIAN_FRONTEND" >>"$CALLS"
echo 'noise of apt-get'
# A package of this name cannot be had.
if [ -s "$SCRATCH/unavailable" ] && echo " $* " | grep -qF " $(cat "$SCRATCH/unavailable") "; then
    echo 'E: Unable to locate package' >&2
    exit 100
fi
TEXT
stand_in cmake <<'TEXT'
[ ! -e "/proc/$$/fd/9" ] || echo 'inherited the lock' >>"$CALLS"
echo "cmake $*" >>"$CALLS"
case $1 in
    --preset)
        mkdir -p "build/$2"
        echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"build/$2/CMakeCache.txt"
        : >"build/$2/build.ninja"
        ;;
    --build)
        if [ -e "$SCRATCH/broken" ]; then
            echo '[1/2] Building C object'
            echo 'error: expected expression'
            exit 1
        fi
        mkdir "$SCRATCH/building" 2>/dev/null || echo 'two builds at once' >>"$CALLS"
        [ ! -e "$SCRATCH/slow" ] || sleep 0.3
        rmdir "$SCRATCH/building"
        mkdir -p "$2/bin"
        cp "$SCRATCH/program" "$2/bin/mhabench"
        ;;
esac
TEXT
stand_in ctest <<'TEXT'
echo "ctest $*" >>"$CALLS"
echo 'summary of ctest'
exit 8
TEXT
cat >"$scratch/program" <<'TEXT'
#!/bin/sh
# Descriptor 9 is the launcher's lock, which must not outlive the build.
[ ! -e "/proc/$$/fd/9" ] || printf 'with the lock '
printf 'in %s' "$PWD"
for word; do printf ' [%s]' "$word"; done
echo
exit 77
TEXT
chmod +x "$scratch/program"
{ grep -E '^(run|test)_(needs|wants)=' "$source/mhabench" | sed "s/.*='//; s/'.*//" | tr ' ' '\n'; } >"$scratch/listed"
[ "$(grep -c . "$scratch/listed")" -ge 10 ] || fail 'cannot read the package lists of the launcher'

# A machine of the given kind, a tree that was never built.
machine() {
    echo "$1" >"$scratch/architecture"
    echo "$2" >"$scratch/uid"
    : >"$scratch/foreign"
    : >"$packages"
    : >"$calls"
    rm -rf "$tree/build" "$bin/sudo" "$scratch/broken" "$scratch/unavailable"
}
all_installed() {
    # As dpkg-query prints them; fonts are of no architecture.
    sed 's/$/:amd64 installed/; s/^fonts-dejavu-core:amd64/fonts-dejavu-core:all/; s/^libsimde-dev:amd64/libsimde-dev:all/' \
        "$scratch/listed" >"$packages"
}
launch() {
    : >"$calls"
    run env PATH="$bin" "$tree/mhabench" "$@"
    cp "$calls" "$scratch/called"
    ! grep -q 'inherited the lock' "$calls" || fail 'a child inherited the lock'
}
expect_call() {
    grep -qxF -- "$1" "$scratch/called" || {
        show called
        show err
        fail "was not called: $1"
    }
}
expect_no_call() {
    ! grep -q -- "^$1" "$scratch/called" || {
        show called
        fail "was called: $1"
    }
}
needs='build-essential cmake ninja-build pkg-config libbenchmark-dev libjansson-dev'
wants='libxsmm-dev libopenblas-openmp-dev libdnnl-dev libsleef-dev libhwloc-dev libsqlite3-dev gnuplot-nox fonts-dejavu-core'
apt='apt-get install -y --no-install-recommends'

# Root on a bare machine: installs, configures, builds, hands over.
machine amd64 0
launch run --op qk
expect_status 77 "the program's own exit code"
expect_call 'apt-get update DEBIAN_FRONTEND=noninteractive'
expect_call "$apt $needs $wants DEBIAN_FRONTEND=noninteractive"
expect_call 'cmake --preset release'
expect_text out "in $PWD [run] [--op] [qk]"
expect_no_text out 'with the lock'
[ "$(wc -l <"$scratch/out")" = 1 ] || { show out; fail 'more on stdout than the program wrote'; }
expect_no_text err 'noise of apt-get'

# The second time, with everything there, only what changed is built.
all_installed
launch run
expect_no_call apt-get
expect_no_call 'cmake --preset'
expect_call "cmake --build $tree/build/release"
expect_empty err

# Edited presets are configured again; so is a tree that was moved, from scratch.
touch -d '+1 minute' "$tree/CMakePresets.json"
launch run
expect_call 'cmake --preset release'
touch -d '-1 day' "$tree/CMakePresets.json"
mv "$tree" "$scratch/moved" && tree=$scratch/moved
launch run
expect_call 'cmake --preset release --fresh'
launch run
expect_no_call 'cmake --preset'

# Arguments come through as they are, from any folder, through a symbolic link.
ln -s "$tree/mhabench" "$scratch/a link"
mkdir "$scratch/else where"
: >"$calls"
# shellcheck disable=SC2016 # the inner shell expands
run env PATH="$bin" sh -c 'cd "$1" && exec ../"a link" check "two words" "" "*"' sh "$scratch/else where"
cp "$calls" "$scratch/called"
expect_status 77 'through a link'
expect_call "cmake --build $tree/build/release"
expect_text out "in $scratch/else where [check] [two words] [] [*]"
# shellcheck disable=SC2016 # the inner shell expands
run env PATH="$bin" sh -c 'cd "$1" && exec sh ../"a link" list' sh "$scratch/else where"
expect_text out "in $scratch/else where [list]"

# --no-install, wherever it stands, installs nothing and is not the program's.
for place in first last; do
    machine amd64 0
    if [ $place = first ]; then
        launch --no-install run --op qk
    else
        launch run --op qk --no-install
    fi
    expect_status 2 "--no-install $place"
    expect_no_call apt-get
    expect_empty out
    expect_text err "missing packages: $needs $wants (--no-install was given)"
done
all_installed
launch run --no-install --op qk
expect_text out "in $PWD [run] [--op] [qk]"

# Neither root nor sudo: says the line to run.
machine amd64 1000
launch run
expect_status 2 'without root and sudo'
expect_no_call apt-get
expect_no_call cmake
expect_empty out
expect_text err "  apt-get update && $apt $needs $wants"
# What is not indispensable does not stop anyone.
all_installed
grep -v '^gnuplot-nox' "$packages" >"$packages.less" && mv "$packages.less" "$packages"
launch run
expect_status 77 'without an optional package'
expect_text err 'missing packages: gnuplot-nox (this is not root and there is no sudo)'

# With sudo it is used.
machine amd64 1000
stand_in sudo <<'TEXT'
echo "sudo $*" >>"$CALLS"
exec "$@"
TEXT
launch run
expect_call "sudo env DEBIAN_FRONTEND=noninteractive $apt $needs $wants"
expect_status 77 'with sudo'

# A package that cannot be had: without it when it is optional, else the log and exit code 2.
machine amd64 0
echo libxsmm-dev >"$scratch/unavailable"
launch run
expect_status 77 'an optional package that cannot be had'
expect_call "$apt $needs DEBIAN_FRONTEND=noninteractive"
expect_call "$apt libhwloc-dev DEBIAN_FRONTEND=noninteractive"
expect_text err 'cannot install libxsmm-dev: going on without'
machine amd64 0
echo libjansson-dev >"$scratch/unavailable"
launch run
expect_status 2 'a needed package that cannot be had'
expect_text err 'E: Unable to locate package'
expect_no_call cmake

# Another architecture's package is not ours.
machine amd64 0
all_installed
sed 's/^libjansson-dev:amd64/libjansson-dev:arm64/' "$packages" >"$packages.less" && mv "$packages.less" "$packages"
launch run
expect_call "$apt libjansson-dev DEBIAN_FRONTEND=noninteractive"
# Nor is a removed one whose settings remain.
all_installed
sed 's/^cmake:amd64 installed/cmake:amd64 config-files/' "$packages" >"$packages.less" && mv "$packages.less" "$packages"
launch run
expect_call "$apt cmake DEBIAN_FRONTEND=noninteractive"

# The peers are of x86 levels.
machine arm64 0
launch run
expect_call "$apt $needs libhwloc-dev libsqlite3-dev gnuplot-nox fonts-dejavu-core DEBIAN_FRONTEND=noninteractive"

# A build that fails shows its log, on stderr.
machine amd64 0
all_installed
touch "$scratch/broken"
launch run
expect_status 2 'a build that fails'
expect_text err 'error: expected expression'
expect_empty out

# Two launchers at once take turns.
machine amd64 0
all_installed
touch "$scratch/slow"
env PATH="$bin" "$tree/mhabench" list >"$scratch/other" 2>&1 &
launch run
wait
rm "$scratch/slow"
expect_no_call 'two builds'
expect_text out "in $PWD [run]"
expect_text other "in $PWD [list]"

# Without dpkg there is nothing to ask: the configuration tells what it does not find.
machine amd64 1000
mv "$bin/dpkg" "$bin/dpkg-query" "$scratch"
launch run
expect_status 77 'on a system without dpkg'
expect_no_call apt-get
mv "$scratch/dpkg" "$scratch/dpkg-query" "$bin"

# selftest installs more, runs ctest and ends with its exit code; release stays as it is.
machine amd64 0
launch selftest -R kernels
expect_status 8 "ctest's own exit code"
expect_call 'dpkg --add-architecture arm64'
grep -q '^apt-get install .* libcmocka-dev .*libbenchmark-dev:arm64' "$scratch/called" || { show called; fail 'packages of the tests'; }
expect_call "ctest --test-dir $tree/build/selftest --output-on-failure -R kernels"
expect_no_call 'cmake --preset release'
expect_text out 'summary of ctest'
machine amd64 1000
launch selftest
expect_status 2 'selftest without root and sudo'
expect_text err '  dpkg --add-architecture arm64 && apt-get update && apt-get install'
machine arm64 0
launch selftest
expect_no_call 'dpkg --add-architecture'

# Help builds and installs nothing.
machine amd64 0
launch --help
expect_status 0 '--help'
expect_text out 'usage: ./mhabench'
expect_no_call apt-get
expect_no_call cmake
launch
expect_status 2 'no command'
expect_empty out
# With the program built, its own help follows.
all_installed
launch list
launch --help
expect_text out "in $PWD [--help]"
