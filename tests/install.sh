#!/bin/sh
# An installed copy: it runs from where it was put and where it is moved to, with its own libraries and
# plots; the plug-in of the README is built against it, with pkg-config and with CMake.
# usage: install.sh CMAKE CC BUILD VERSION
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
cmake=$1 cc=$2 build=$3 version=$4

run "$cmake" --install "$build" --prefix "$scratch/first"
expect_status 0 'installing'
# Not where it was installed: what is found is found relative to the program.
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix
program=$prefix/bin/mhabench
cd "$scratch"
run "$program" list
expect_status 0 'list of the installed copy'
expect_text out softmax_f32_scalar_libm
expect_no_text err 'without a peer'
[ -n "$(find "$prefix" -path '*/mhabench/libmha_kernels.so')" ] || fail 'the kernel library is not installed'
[ -f "$prefix/share/mhabench/plots/style.gp" ] || fail 'the plots are not installed'
# Through a link, as in a folder of one's own in PATH.
ln -s "$program" link
run ./link list
expect_status 0 'list through a link'

# check WHAT STATUS: takes my_softmax.so through the installed program.
check() {
    run "$program" check --plugin ./my_softmax.so --kernel '*_mine' --batch 1 --heads 1 --seq 17
    expect_status "$2" "$1"
}

pc=$(dirname "$(find "$prefix" -name mhabench.pc)")
if command -v pkg-config >/dev/null; then
    PKG_CONFIG_PATH=$pc
    export PKG_CONFIG_PATH
    [ "$(pkg-config --modversion mhabench)" = "$version" ] || fail 'pkg-config tells another version'
    for bug in '' -DBUG; do
        expected=0
        [ -z "$bug" ] || expected=1
        # shellcheck disable=SC2046,SC2086 # words
        run "$cc" -O3 -shared -fPIC $bug $(pkg-config --cflags mhabench) "$here/plugin/my_softmax.c" -o my_softmax.so -lm
        expect_status 0 'building a plug-in with pkg-config'
        check "a plug-in built with pkg-config $bug" "$expected"
    done
    rm my_softmax.so
fi

mkdir cmake
cat >cmake/CMakeLists.txt <<TEXT
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES C)
find_package(mhabench $version REQUIRED)
add_library(my_softmax MODULE "$here/plugin/my_softmax.c")
set_target_properties(my_softmax PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "$scratch")
target_link_libraries(my_softmax PRIVATE mhabench::kernel_api m)
TEXT
run "$cmake" -S cmake -B cmake/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 0 'configuring a plug-in with find_package(mhabench)'
run "$cmake" --build cmake/build
expect_status 0 'building a plug-in with CMake'
check 'a plug-in built with CMake' 0
# Another version of the header is another ABI, before 1.0.
sed -i 's/find_package(mhabench [0-9.]*/find_package(mhabench 99.0/' cmake/CMakeLists.txt
run "$cmake" -S cmake -B cmake/other -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 1 'a version that is not there'
