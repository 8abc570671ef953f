/// softmax on glibc's libmvec. Error and algorithm: softmax_expf.inl; its expf is good to 4 ULP
/// (glibc manual, "Errors in Math Functions").
#include "libmvec.h"

#define PEER_LIBRARY libmvec
#define PEER_EXP(v) LIBMVEC_EXPF(v)
#define PEER_READY(why) libmvec_ready(why)
#define PEER_SUMMARY "three passes on the C library's vector expf"
#include "softmax_expf.inl"
