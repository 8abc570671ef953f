/// softmax on SLEEF. Error and algorithm: softmax_expf.inl; its expf of the name u10 is good to 1.0
/// ULP (SLEEF's documentation). The function is called by its level's name, past the library's own
/// choice by the CPU.
#include <immintrin.h>
#include <sleef.h>

#ifdef __AVX512F__
#define PEER_EXP(v) Sleef_expf16_u10avx512f(v)
#else
#define PEER_EXP(v) Sleef_expf8_u10avx2(v)
#endif
#define PEER_LIBRARY sleef
#define PEER_READY(why) ((void)(why), true)
#define PEER_SUMMARY "three passes on SLEEF's expf (u10)"
#include "softmax_expf.inl"
