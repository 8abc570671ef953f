#!/bin/sh
# --with: what it refuses, and in which pipelines it has an effect.
# usage: with.sh MHABENCH PLUGIN
set -eu
. "$(dirname "$0")/../common.sh"
program=$1 plugin=$2
small='--batch 1 --heads 2 --head-dim 16 --seq 9 --mask none --threads 1'

# refused TEXT OPTION...
refused() {
    text=$1
    shift
    # shellcheck disable=SC2086 # lists of words
    run ${MHABENCH_EMULATOR:-} "$program" check --op mha $small "$@"
    expect_status 2 "--with names nothing"
    expect_text err "$text"
    expect_empty out
}
refused "there is no such kernel" --with qk=qk_f32_scalar_nosuch
refused "that is a kernel of softmax" --with qk=softmax_f32_scalar_libm
refused "unknown step 'kq'" --with kq=qk_f32_scalar_dot
refused "no pipeline of this build takes it" --with copy=copy_f32_scalar_u8
refused "no pipeline of this build takes it" --with embed=embed_f32_scalar_right --plugin "$plugin"

# A scalar kernel may stand in every pipeline, and one that is wrong makes all wrong that have the step.
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" check --op mha $small --plugin "$plugin" --with softmax=softmax_f32_scalar_zeros
expect_status 1 "every unfused pipeline has a softmax"
grep -qE '^WRONG +mha_f32_scalar_unfused ' "$scratch/out" || fail "the unfused pipeline has a softmax"
grep -qE '^PASSED +mha_f32_scalar_fused ' "$scratch/out" || fail "the fused pipeline has no softmax"
expect_no_text out 'PASSED      mha_f32_avx2_unfused'

# A pipeline's hash is that of its kernels' code.
hash_of() {
    # shellcheck disable=SC2086
    run ${MHABENCH_EMULATOR:-} "$program" check --kernel mha_f32_scalar_unfused $small --json "$@"
    expect_status 0 "it is right"
    sed -n 's/^ *"code_hash": "\(.*\)".*/\1/p' "$scratch/out" | head -n 1
}
plain=$(hash_of)
same=$(hash_of --with split=split_f32_scalar_loop)
[ -n "$plain" ] || fail "a pipeline of hashed kernels has a hash"
[ "$plain" = "$same" ] || fail "the kernel that was there already changes nothing: $plain, $same"

# The list shows them, and nobody may bring one.
# shellcheck disable=SC2086
run ${MHABENCH_EMULATOR:-} "$program" list --op mha
expect_status 0 "the list of pipelines"
expect_text out mha_f32_scalar_unfused
expect_text out mha_f32_scalar_fused
expect_no_text out mha_f32_scalar_autovec
