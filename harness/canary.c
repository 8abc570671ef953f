#include "canary.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "diag.h"
#include "stats.h"
#include "team.h"

/// Long enough for the clock's resolution (some 20 microseconds at 3 GHz), short beside a sample.
enum { DECREMENTS = 60000, FMA_STEPS = 3000 };

/// A look that is slower than its history's lower quartile by this factor was not alone on its
/// core. A hyper-thread neighbour doubles the time; a clock that drifts changes it by some percent.
#define DISTURBED_FACTOR 1.25

struct look_job {
    const struct mha_kernel *peak;
    struct canary *looks;
};

static void decrement(uint64_t n) {
#if defined(__x86_64__)
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
#elif defined(__aarch64__)
    __asm__ volatile("1: subs %0, %0, #1\n\tb.ne 1b" : "+r"(n) : : "cc");
#else
    while (n > 0) {
        __asm__ volatile("" : "+r"(n));
        n--;
    }
#endif
}

static void look(void *context, int thread) {
    const struct look_job *job = context;
    struct canary *c = &job->looks[thread];
    double start = team_now_ns();
    decrement(DECREMENTS);
    double end = team_now_ns();
    c->decrement_ns = (end - start) / DECREMENTS;
    c->fma_ns = 0;
    if (job->peak) {
        float lanes[MHA_PEAK_LANES];
        const struct mha_peak_args args = {NULL, FMA_STEPS, 1, 1, lanes};
        start = team_now_ns();
        job->peak->run.peak(&args, NULL);
        end = team_now_ns();
        c->fma_ns = (end - start) / FMA_STEPS;
    }
}

struct canary canary_look(int threads, const struct mha_kernel *peak) {
    struct canary *looks = diag_alloc(calloc((size_t)threads, sizeof(*looks)));
    struct look_job job = {peak, looks};
    team_each(threads, look, &job);
    struct canary worst = {0, 0};
    for (int t = 0; t < threads; t++) {
        worst.decrement_ns = fmax(worst.decrement_ns, looks[t].decrement_ns);
        worst.fma_ns = fmax(worst.fma_ns, looks[t].fma_ns);
    }
    free(looks);
    return worst;
}

/// Lower quartile of one figure over the history.
static double usual(const struct canary_history *history, bool fma) {
    double *values = diag_alloc(calloc(history->count, sizeof(*values)));
    for (size_t i = 0; i < history->count; i++) {
        values[i] = fma ? history->looks[i].fma_ns : history->looks[i].decrement_ns;
    }
    const double quartile = stats_quantile(values, history->count, 0.25);
    free(values);
    return quartile;
}

bool canary_disturbed(struct canary_history *history, struct canary before, struct canary after) {
    history->looks =
        diag_alloc(realloc(history->looks, (history->count + 2) * sizeof(*history->looks)));
    history->looks[history->count++] = before;
    history->looks[history->count++] = after;
    const double decrement_ns = usual(history, false), fma_ns = usual(history, true);
    const struct canary worst = {fmax(before.decrement_ns, after.decrement_ns),
                                 fmax(before.fma_ns, after.fma_ns)};
    return worst.decrement_ns > DISTURBED_FACTOR * decrement_ns ||
           worst.fma_ns > DISTURBED_FACTOR * fma_ns;
}

double canary_ghz(const struct canary_history *history) {
    double *values = diag_alloc(calloc(history->count + 1, sizeof(*values)));
    for (size_t i = 0; i < history->count; i++) {
        values[i] = history->looks[i].decrement_ns;
    }
    const double median = stats_median(values, history->count);
    free(values);
    return 1 / median;
}

void canary_free(struct canary_history *history) {
    free(history->looks);
    history->looks = NULL;
    history->count = 0;
}
