# The ISA words: which processors may have them and which flags turn them on. This is the only place
# that names an -m flag; what a CPU must report before such code may run stands in cpu.c.
#
#   mha_isa(<word> <regex of CMAKE_SYSTEM_PROCESSOR> <flags> ...)
#
# A word is compiled when the processor matches and the compiler takes the flags.
include(CheckCCompilerFlag)

set(MHA_X86 "^(x86_64|AMD64)$")
set(MHA_ARM "^(aarch64|arm64)$")

set(MHA_ISAS "")
macro(mha_isa word processors)
  list(APPEND MHA_ISAS ${word})
  set(MHA_FLAGS_${word} ${ARGN})
  set(MHA_ENABLE_${word} OFF)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "${processors}")
    string(REPLACE ";" " " mha_flags "${MHA_FLAGS_${word}}")
    check_c_compiler_flag("${mha_flags}" MHA_COMPILER_HAS_${word})
    if(MHA_COMPILER_HAS_${word})
      set(MHA_ENABLE_${word} ON)
    else()
      message(STATUS "mhabench: without ${word}: the compiler does not take ${mha_flags}")
    endif()
  endif()
endmacro()

# scalar is plain C, one element at a time: the vectorisers are off.
mha_isa(scalar ".*" -fno-tree-vectorize -fno-tree-slp-vectorize)
mha_isa(avx2 "${MHA_X86}" -mavx2 -mfma -mf16c)
# 512-bit vectors are asked for by name, since compilers prefer 256 bits on CPUs that once throttled.
mha_isa(avx512 "${MHA_X86}" -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
        -mprefer-vector-width=512)
mha_isa(avx512bf16 "${MHA_X86}" ${MHA_FLAGS_avx512} -mavx512bf16)
mha_isa(neon "${MHA_ARM}" -march=armv8-a)

# What files tagged `autovec` get on top: the licence that a programmer gives a vectoriser.
set(MHA_AUTOVEC_FLAGS -O3 -fopenmp-simd -ffp-contract=fast -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  # gcc 12 keeps vectors in registers over calls of functions that leave these alone, and takes every call for
  # one behind which no vzeroupper is due: one of these kernels could return without. The hand-written ones are
  # clean as they are; tests/uppers.sh looks at all.
  list(APPEND MHA_AUTOVEC_FLAGS -fno-ipa-ra)
endif()
