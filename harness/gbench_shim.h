/// Google Benchmark behind a C API: the stopwatch of every sample. The only C++ of the project is
/// in gbench_shim.cc.
#ifndef MHA_GBENCH_SHIM_H
#define MHA_GBENCH_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Hands Google Benchmark its own options ("--benchmark_..."). Returns false when it refuses one.
bool gbench_init(int argc, char **argv);

/// Takes one sample: one Google Benchmark run of `iterations` iterations, wall time. `body` is
/// called once with the number of iterations it has to make.
///
/// @param[in] name  Name of the case, as Google Benchmark sees it.
/// @return Nanoseconds per iteration, or a negative number when the run failed.
double gbench_sample(const char *name, void (*body)(void *context, uint64_t iterations),
                     void *context, uint64_t iterations);

#ifdef __cplusplus
}
#endif

#endif
