#include "calibrate.h"

#include <math.h>

/// So many iterations and still no time: that is no clock. At one a nanosecond they take 18
/// minutes.
#define ITERATIONS_MAX (UINT64_C(1) << 40)

bool calibrate(struct calibration *calibration, stopwatch_fn *stopwatch, void *context,
               double min_time_ns) {
    for (uint64_t n = 1; n <= ITERATIONS_MAX;) {
        double each = stopwatch(context, n);
        if (each * (double)n >= 0.5 * min_time_ns) {
            // A few calls that were interrupted look like long ones, and every sample of the launch
            // would then be as short as they: the time counts when a second look shows it too.
            each = fmin(each, stopwatch(context, n));
        }
        const double took = each * (double)n;
        if (!(each >= 0)) {
            return false;
        }
        if (took >= 0.5 * min_time_ns) {
            *calibration = (struct calibration){(uint64_t)fmax(1, ceil(min_time_ns / each)), each};
            return true;
        }
        n = took > 0 ? (uint64_t)fmin(10 * (double)n, ceil(min_time_ns / each)) : 10 * n;
    }
    return false;
}
