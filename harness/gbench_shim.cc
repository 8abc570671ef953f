#include "gbench_shim.h"

#include <benchmark/benchmark.h>

#include <vector>

namespace {

/// Keeps the one figure that we ask for; prints nothing.
class LastRun : public benchmark::BenchmarkReporter {
   public:
    bool ReportContext(const Context &) override {
        return true;
    }
    void ReportRuns(const std::vector<Run> &runs) override {
        for (const Run &run : runs) {
            if (run.run_type == Run::RT_Iteration && !run.error_occurred && run.iterations > 0) {
                ns_per_iteration =
                    run.real_accumulated_time / static_cast<double>(run.iterations) * 1e9;
            }
        }
    }
    double ns_per_iteration = -1;
};

}  // namespace

bool gbench_init(int argc, char **argv) {
    benchmark::Initialize(&argc, argv);
    return argc <= 1;  // what is left was not understood
}

double gbench_sample(const char *name, void (*body)(void *, uint64_t), void *context,
                     uint64_t iterations) {
    LastRun reporter;
    benchmark::ClearRegisteredBenchmarks();
    // KeepRunningBatch hands over all iterations at once: the loop is ours, the clock is not.
    benchmark::RegisterBenchmark(
        name,
        [=](benchmark::State &state) {
            while (state.KeepRunningBatch(static_cast<int64_t>(iterations))) {
                body(context, iterations);
            }
        })
        ->Iterations(static_cast<int64_t>(iterations))
        ->UseRealTime();
    benchmark::RunSpecifiedBenchmarks(&reporter);
    return reporter.ns_per_iteration;
}
