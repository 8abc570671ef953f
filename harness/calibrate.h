/// How many iterations one sample has: apart from measure.c so that a test can hand in a clock.
#ifndef MHA_CALIBRATE_H
#define MHA_CALIBRATE_H

#include <stdbool.h>
#include <stdint.h>

/// A stopwatch: nanoseconds per iteration when `iterations` are made, 0 when the clock is too
/// coarse to see them, negative when it failed.
typedef double stopwatch_fn(void *context, uint64_t iterations);

/// What calibration found.
struct calibration {
    uint64_t iterations;  ///< Of one sample, >= 1: enough to fill the time asked for.
    double call_ns;       ///< One iteration; > 0.
};

/// Finds the iterations that fill `min_time_ns` (> 0), whatever the clock's resolution: what it
/// cannot see grows tenfold. A time that an interrupt made long does not count: the iterations that
/// seem enough are made twice, and the shorter time is taken. Returns false when the stopwatch
/// fails, or sees nothing at all.
bool calibrate(struct calibration *calibration, stopwatch_fn *stopwatch, void *context,
               double min_time_ns);

#endif
