/// The worker's side of checking exponentials: walks the floats of [-104, 0], or a sample of them,
/// through a kernel's exp_f32 and holds every result against double precision.
///
/// The reference is the C library's exp() in double. Its error, below one unit of a double, is
/// 2^-29 of a float's: what is reported is the kernel's own to all digits shown.
#include "exponential.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "diag.h"
#include "protocol.h"
#include "results.h"
#include "team.h"
#include "worker.h"

/// Floats of one call: a prime, so that every call ends in a tail, whatever the vectors.
#define CHUNK ((size_t)4093)
/// Floats whose references are kept at a time, and the events' distance: some 8 MiB of doubles.
#define BATCH (256 * CHUNK)

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// Floats of one stretch of the walk: the one with the bits `first`, and every `stride`th further
/// from zero.
struct stretch {
    uint32_t first;
    uint32_t stride;
    size_t count;
};

/// Where an error stands.
struct place {
    float x, got;
    double want;
};

/// What a thread found, on cache lines of its own.
struct finding {
    _Alignas(64) double max_ulp;
    struct place worst;
    bool wrong;
    struct place first_wrong;
};

struct subject {
    const struct mha_kernel *kernel;
    enum verdict verdict;
    size_t floats;
    double max_ulp;
    struct place worst;
    char reason[300];
};

struct walk {
    struct stretch stretch;
    size_t begin, end;  ///< The batch, in floats of the stretch.
    double *want;       ///< [BATCH]
    float *x, *y;       ///< [threads][SLOT]
    const struct mha_kernel *kernel;
    struct finding *findings;  ///< [threads]
};

/// A thread's buffer: a chunk, and a canary before and behind it. The canary in front makes the
/// results start at an odd address.
enum { SLOT = 4096 + 16 };
_Static_assert((size_t)SLOT >= CHUNK + 2, "a slot holds a chunk and two canaries");

static float at(const struct stretch *s, size_t i) {
    return float_of(s->first + (uint32_t)i * s->stride);
}

static size_t chunk_length(const struct walk *w, size_t chunk) {
    const size_t left = w->end - w->begin - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void compute_references(void *context, size_t chunk, int thread) {
    (void)thread;
    const struct walk *w = context;
    const size_t offset = chunk * CHUNK, n = chunk_length(w, chunk);
    for (size_t i = 0; i < n; i++) {
        w->want[offset + i] = exp((double)at(&w->stretch, w->begin + offset + i));
    }
}

/// One unit in the last place of a float near `want`, which is positive and, as a float, normal.
static inline double unit_of(double want) {
    uint64_t bits;
    double power;
    memcpy(&bits, &want, sizeof(bits));
    bits &= 0x7ff0000000000000u;  // the exponent alone: the power of two at or below
    memcpy(&power, &bits, sizeof(power));
    return power * 0x1p-23;
}

/// Largest permitted error: below the smallest normal, what flushing may cost.
static inline double bound_of(double want) {
    return want >= (double)FLT_MIN ? EXPONENTIAL_ULP_MAX * unit_of(want) : (double)FLT_MIN;
}

static inline double ulp_error(double want, float got) {
    return want >= (double)FLT_MIN ? fabs((double)got - want) / unit_of(want) : 0;
}

static bool is_wrong(double want, float got) {
    return !(fabs((double)got - want) <= bound_of(want));
}

static void judge_chunk(struct finding *f, const float *x, const float *y, const double *want,
                        size_t n) {
    double max_ulp = 0;
    bool wrong = false;
    for (size_t i = 0; i < n; i++) {
        const double ulp = ulp_error(want[i], y[i]);
        max_ulp = ulp > max_ulp ? ulp : max_ulp;
        wrong |= is_wrong(want[i], y[i]);
    }
    if (max_ulp > f->max_ulp) {
        f->max_ulp = max_ulp;
        for (size_t i = 0; i < n; i++) {
            if (!(ulp_error(want[i], y[i]) < max_ulp)) {
                f->worst = (struct place){x[i], y[i], want[i]};
                break;
            }
        }
    }
    for (size_t i = 0; wrong && !f->wrong && i < n; i++) {
        if (is_wrong(want[i], y[i])) {
            f->wrong = true;
            f->first_wrong = (struct place){x[i], y[i], want[i]};
        }
    }
}

static void run_chunk(void *context, size_t chunk, int thread) {
    const struct walk *w = context;
    struct finding *f = &w->findings[thread];
    float *x = w->x + (size_t)thread * SLOT, *y = w->y + (size_t)thread * SLOT;
    const size_t offset = chunk * CHUNK, n = chunk_length(w, chunk);
    for (size_t i = 0; i < n; i++) {
        x[i] = at(&w->stretch, w->begin + offset + i);
    }
    // NaN before, behind and in between: what is not written, or written beside, shows.
    for (size_t i = 0; i < n + 2; i++) {
        y[i] = NAN;
    }
    w->kernel->exp_f32(n, x, y + 1);
    judge_chunk(f, x, y + 1, w->want + offset, n);
    if ((!isnan(y[0]) || !isnan(y[n + 1])) && !f->wrong) {
        f->wrong = true;
        f->first_wrong = (struct place){x[isnan(y[0]) ? n - 1 : 0], NAN, (double)NAN};
    }
}

static void send_start(const struct subject *s, const char *what) {
    protocol_send(WORKER_EVENT_FD, json_pack("{s:s, s:s, s:s}", "event", "start", "kernel",
                                             s->kernel->name, "what", what));
}

static void fail_at(struct subject *s, const struct place *p) {
    if (s->verdict == VERDICT_FAILED) {
        return;
    }
    s->verdict = VERDICT_FAILED;
    if (isnan(p->want)) {
        snprintf(s->reason, sizeof(s->reason), "exp_f32() writes beside its results, near x = %a",
                 (double)p->x);
    } else {
        snprintf(s->reason, sizeof(s->reason),
                 "exp(%a) = exp(%.9g): expected %.9g, got %.9g; allowed is an error of %.3g",
                 (double)p->x, (double)p->x, p->want, (double)p->got, bound_of(p->want));
    }
}

/// Takes one batch of a stretch through every subject.
static void walk_batch(struct walk *w, struct subject *subjects, size_t count, int threads) {
    const size_t chunks = (w->end - w->begin + CHUNK - 1) / CHUNK;
    char what[100];
    team_for(threads, chunks, compute_references, w);
    snprintf(what, sizeof(what), "exp_f32 at %a to %a", (double)at(&w->stretch, w->begin),
             (double)at(&w->stretch, w->end - 1));
    for (size_t k = 0; k < count; k++) {
        struct subject *s = &subjects[k];
        send_start(s, what);
        memset(w->findings, 0, (size_t)threads * sizeof(*w->findings));
        w->kernel = s->kernel;
        team_for(threads, chunks, run_chunk, w);
        s->floats += w->end - w->begin;
        for (int t = 0; t < threads; t++) {
            const struct finding *f = &w->findings[t];
            if (f->max_ulp > s->max_ulp) {
                s->max_ulp = f->max_ulp;
                s->worst = f->worst;
            }
            if (f->wrong) {
                fail_at(s, &f->first_wrong);
            }
        }
    }
}

/// Values beside the walk, with the neighbours in a vector watched: each at every lane of two
/// vectors of any ISA.
static void check_special(struct subject *s) {
    static const float specials[] = {-INFINITY, NAN, 0.0f, -0.0f, -FLT_MAX, -FLT_MIN};
    enum { LANES = 32, LENGTH = LANES + 3 };
    send_start(s, "exp_f32 of special values");
    for (size_t v = 0; v < sizeof(specials) / sizeof(specials[0]); v++) {
        for (size_t lane = 0; lane < LENGTH; lane++) {
            float x[LENGTH], y[LENGTH];
            for (size_t i = 0; i < LENGTH; i++) {
                x[i] = i == lane ? specials[v] : -1.0f;
                y[i] = -1.0f;
            }
            s->kernel->exp_f32(LENGTH, x, y);
            for (size_t i = 0; i < LENGTH; i++) {
                const bool masked = isinf(x[i]);  // what a mask leaves: nothing, to the last bit
                const bool right = isnan(x[i]) ? isnan(y[i])
                                   : masked    ? y[i] == 0.0f
                                               : !is_wrong(exp((double)x[i]), y[i]);
                if (!right && s->verdict != VERDICT_FAILED) {
                    s->verdict = VERDICT_FAILED;
                    snprintf(s->reason, sizeof(s->reason),
                             "exp(%g) at index %zu of %d is %.9g, with %g at index %zu",
                             (double)x[i], i, LENGTH, (double)y[i], (double)specials[v], lane);
                }
            }
        }
    }
}

/// Lists the stretches of the walk. Where the exponential changes its nature, a sample takes every
/// float nearby.
static size_t plan(struct stretch *stretches, bool exhaustive, uint64_t seed) {
    const uint32_t zero = bits_of(-0.0f), low = bits_of(EXPONENTIAL_LOW), far = bits_of(-FLT_MAX);
    const size_t all = low - zero + 1;
    size_t count = 0;
    if (exhaustive) {
        stretches[count++] = (struct stretch){zero, 1, all};
    } else {
        const uint32_t offset = (uint32_t)(data_mix(seed, 0) % EXPONENTIAL_STRIDE);
        stretches[count++] = (struct stretch){zero + offset, EXPONENTIAL_STRIDE,
                                              (all - 1 - offset) / EXPONENTIAL_STRIDE + 1};
        // ln 2^-126, -127 ln 2 and ln 2^-149: the last normal result, a scale of all zero bits, the
        // last denormal.
        const float breaks[] = {-0x1.5d589ep+6f, -0x1.601e68p+6f, -0x1.9d1dap+6f};
        for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
            stretches[count++] = (struct stretch){bits_of(breaks[i]) - 2048, 1, 4096};
        }
    }
    // Beyond there is nothing but zero to be expected, from 10^9 floats more: some 10^4 of them.
    const uint32_t stride = 99991;
    stretches[count++] = (struct stretch){low, stride, (far - low) / stride + 1};
    return count;
}

static void send_verdict(const struct subject *s) {
    protocol_send(WORKER_EVENT_FD,
                  json_pack("{s:s, s:s, s:s, s:o, s:o, s:I, s:s}", "event", "exponential", "kernel",
                            s->kernel->name, "verdict", verdict_text(s->verdict), "max_ulp",
                            protocol_real(s->max_ulp), "at", protocol_real((double)s->worst.x),
                            "floats", (json_int_t)s->floats, "reason", s->reason));
}

void worker_exponential(struct worker *worker) {
    const json_t *job = json_object_get(worker->job, "exponentials");
    const json_t *names = json_object_get(job, "kernels");
    const int threads = worker->threads_allowed;
    struct subject *subjects = diag_alloc(calloc(json_array_size(names) + 1, sizeof(*subjects)));
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const struct loaded_kernel *loaded =
            library_find(&worker->table, json_string_value(json_array_get(names, i)));
        if (loaded && loaded->kernel->exp_f32) {
            subjects[count++] =
                (struct subject){.kernel = loaded->kernel, .verdict = VERDICT_PASSED};
        }
    }
    struct walk w = {
        .want = diag_alloc(malloc(BATCH * sizeof(double))),
        .x = diag_alloc(calloc((size_t)threads * SLOT, sizeof(float))),
        .y = diag_alloc(calloc((size_t)threads * SLOT, sizeof(float))),
        .findings = diag_alloc(
            aligned_alloc(_Alignof(struct finding), (size_t)threads * sizeof(struct finding))),
    };
    struct stretch stretches[8];
    const size_t planned =
        plan(stretches, json_is_true(json_object_get(job, "exhaustive")), worker->seed);
    double total = 0, done = 0;
    for (size_t i = 0; i < planned; i++) {
        total += (double)stretches[i].count;
    }
    for (size_t k = 0; k < count; k++) {
        check_special(&subjects[k]);
    }
    for (size_t i = 0; i < planned; i++) {
        w.stretch = stretches[i];
        for (w.begin = 0; w.begin < w.stretch.count; w.begin = w.end) {
            const size_t left = w.stretch.count - w.begin;
            w.end = w.begin + (left < BATCH ? left : BATCH);
            walk_batch(&w, subjects, count, threads);
            done += (double)(w.end - w.begin);
            protocol_send(WORKER_EVENT_FD,
                          json_pack("{s:s, s:f}", "event", "share", "share", done / total));
        }
    }
    for (size_t k = 0; k < count; k++) {
        send_verdict(&subjects[k]);
    }
    free(w.want);
    free(w.x);
    free(w.y);
    free(w.findings);
    free(subjects);
}
