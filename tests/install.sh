#!/bin/sh
# An installed copy: it runs from where it was put, and plug-ins are built against it.
# usage: install.sh CMAKE CC BUILD VERSION
set -eu
. "$(dirname "$0")/common.sh"
cmake=$1 cc=$2 build=$3 version=$4
prefix=$scratch/prefix
program=$prefix/bin/mhabench

run "$cmake" --install "$build" --prefix "$prefix"
expect_status 0 'installing'
# From another folder, through the link, with libraries of the installed copy only.
cd "$scratch"
run "$program" list
expect_status 0 'list of the installed copy'
expect_text out softmax_f32_scalar_libm
[ -n "$(find "$prefix" -name libmha_kernels.so)" ] || fail 'the kernel library is not installed'

mkdir plugin
cat >plugin/CMakeLists.txt <<TEXT
cmake_minimum_required(VERSION 3.25)
project(plugin LANGUAGES C)
find_package(mhabench $version REQUIRED)
foreach(name IN ITEMS right wrong)
  add_library(\${name} MODULE plugin.c)
  target_link_libraries(\${name} PRIVATE mhabench::kernel_abi)
  target_compile_definitions(\${name} PRIVATE FLAW_\${name}=1)
endforeach()
TEXT
cat >plugin/plugin.c <<'TEXT'
#include <mha_kernel.h>
#ifdef FLAW_wrong
enum { FLAW = 1 };  // forgets the last element of every head
#else
enum { FLAW = 0 };
#endif
static void run(const struct mha_concat_args *a, void *workspace) {
    (void)workspace;
    const float *x = a->x;
    float *y = a->y;
    for (size_t t = 0; t < a->tokens; t++) {
        for (size_t h = 0; h < a->heads; h++) {
            for (size_t i = 0; i + FLAW < a->head_dim; i++) {
                y[t * a->y_stride + h * a->head_dim + i] = x[h * a->x_head_stride + t * a->x_stride + i];
            }
        }
    }
}
static const struct mha_kernel kernel = {
    .name = "concat_f32_scalar_plugged", .op = "concat", .dtype = "f32", .isa = "scalar", .tag = "plugged",
    .summary = "a user's own", .run = {.concat = run}};
static const struct mha_library_entry entries[] = {{&kernel, ""}};
static const struct mha_library library = {MHA_ABI_VERSION, sizeof(struct mha_kernel), "plugin", "1", 1, entries};
const struct mha_library *mha_kernel_library(void) {
    return &library;
}
TEXT
run "$cmake" -S plugin -B plugin/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix"
expect_status 0 'configuring a plug-in with find_package(mhabench)'
run "$cmake" --build plugin/build
expect_status 0 'building a plug-in'

check() {
    run "$program" check --plugin "plugin/build/lib$1.so" --kernel concat_f32_scalar_plugged --op concat --seq 17
}
check right
expect_status 0 'checking a plug-in that is right'
check wrong
expect_status 1 'checking a plug-in that is wrong'
