#include "results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "stats.h"

static const char *const verdict_words[] = {
    [VERDICT_UNTESTED] = "UNTESTED",     [VERDICT_PASSED] = "PASSED",
    [VERDICT_FAILED] = "FAILED",         [VERDICT_MISTRUSTED] = "MISTRUSTED",
    [VERDICT_SKIPPED] = "SKIPPED",       [VERDICT_UNSUPPORTED] = "UNSUPPORTED",
    [VERDICT_CRASHED] = "CRASHED",       [VERDICT_TIMEOUT] = "TIMEOUT",
    [VERDICT_ACCOUNTING] = "ACCOUNTING",
};
enum { VERDICTS = sizeof(verdict_words) / sizeof(verdict_words[0]) };

const char *verdict_text(enum verdict verdict) {
    return verdict_words[verdict];
}

enum verdict verdict_find(const char *text) {
    for (size_t i = 0; i < VERDICTS; i++) {
        if (strcmp(verdict_words[i], text) == 0) {
            return (enum verdict)i;
        }
    }
    return VERDICT_UNTESTED;
}

int verdict_exit(enum verdict verdict) {
    switch (verdict) {
        case VERDICT_PASSED:
        case VERDICT_SKIPPED:
        case VERDICT_UNSUPPORTED:
            return EXIT_DONE;
        // Nothing is known of an UNTESTED case: a gate that let it through would pass an empty run.
        case VERDICT_UNTESTED:
        case VERDICT_FAILED:
        case VERDICT_MISTRUSTED:
        case VERDICT_CRASHED:
        case VERDICT_TIMEOUT:
        case VERDICT_ACCOUNTING:
            return EXIT_FOUND;
    }
    return EXIT_FOUND;
}

static void forget_samples(struct row *row) {
    for (size_t i = 0; i < row->launches; i++) {
        free(row->samples[i].ns);
    }
    free(row->samples);
    row->samples = NULL;
    row->launches = 0;
    row_add_steps(row, NULL);
}

void row_free(struct row *row) {
    forget_samples(row);
    free(row->kernel);
    free(row->isa);
    free(row->tag);
    free(row->plugin);
    free(row->reason);
    free(row->best_peer);
    free(row->code_hash);
    free(row->repro);
    memset(row, 0, sizeof(*row));
}

void results_free(struct result *result) {
    for (size_t i = 0; i < result->count; i++) {
        row_free(&result->rows[i]);
    }
    free(result->rows);
    json_decref(result->context);
    memset(result, 0, sizeof(*result));
}

bool row_has_time(const struct row *row) {
    return row->verdict == VERDICT_PASSED && isfinite(row->median_ns) && row->median_ns > 0.0;
}

/// Fills what follows from the row alone.
static void derive_own(struct row *row) {
    row->median_ns = row->min_ns = UNKNOWN;
    row->spread_within = row->spread_between = UNKNOWN;
    row->gflops = row->gbytes_per_s = UNKNOWN;
    if (row->verdict != VERDICT_PASSED && row->verdict != VERDICT_ACCOUNTING) {
        forget_samples(row);
        row->iterations = 0;
        row->disturbed = 0;
        row->effective_ghz = row->ceiling_share = UNKNOWN;
        row->pack_ns = row->create_ns = UNKNOWN;
        row->ceiling_kind = NULL;
    }
    if (row->launches == 0) {
        return;
    }
    double *medians = diag_alloc(calloc(row->launches, sizeof(*medians)));
    double *minima = diag_alloc(calloc(row->launches, sizeof(*minima)));
    double *spreads = diag_alloc(calloc(row->launches, sizeof(*spreads)));
    size_t launches = 0;
    size_t spreads_known = 0;
    for (size_t i = 0; i < row->launches; i++) {
        const struct launch_samples *launch = &row->samples[i];
        if (launch->count == 0) {
            continue;
        }
        medians[launches] = stats_median(launch->ns, launch->count);
        minima[launches] = stats_min(launch->ns, launch->count);
        launches++;
        const double spread = stats_spread(launch->ns, launch->count);
        if (!isnan(spread)) {
            spreads[spreads_known++] = spread;
        }
    }
    row->median_ns = stats_median(medians, launches);
    row->min_ns = stats_min(minima, launches);
    row->spread_within = stats_median(spreads, spreads_known);
    row->spread_between = stats_spread(medians, launches);
    free(medians);
    free(minima);
    free(spreads);
    // Operations per nanosecond are 1e9 per second. A copy has no flops: that is no rate of 0.
    if (row->median_ns > 0.0) {
        row->gflops = row->flops > 0.0 ? row->flops / row->median_ns : UNKNOWN;
        row->gbytes_per_s = row->bytes > 0.0 ? row->bytes / row->median_ns : UNKNOWN;
    }
}

static int compare_sizes(size_t a, size_t b) {
    return (a > b) - (a < b);
}

/// An order in which rows of one problem and thread count are neighbours.
static int compare_groups(const struct row *a, const struct row *b) {
    const struct problem *p = &a->problem;
    const struct problem *q = &b->problem;
    const int differences[] = {
        strcmp(p->op, q->op),
        strcmp(p->dtype, q->dtype),
        compare_sizes(p->shape.batch, q->shape.batch),
        compare_sizes(p->shape.heads, q->shape.heads),
        compare_sizes(p->shape.kv_heads, q->shape.kv_heads),
        compare_sizes(p->shape.seq_q, q->shape.seq_q),
        compare_sizes(p->shape.seq_kv, q->shape.seq_kv),
        compare_sizes(p->shape.head_dim, q->shape.head_dim),
        (p->mask > q->mask) - (p->mask < q->mask),
        compare_sizes(p->window, q->window),
        (p->position.kind > q->position.kind) - (p->position.kind < q->position.kind),
        (p->position.half > q->position.half) - (p->position.half < q->position.half),
        (p->position.base > q->position.base) - (p->position.base < q->position.base),
        (p->position.causal > q->position.causal) - (p->position.causal < q->position.causal),
        (p->cache > q->cache) - (p->cache < q->cache),
        problem_compare_data(p, q),
        (a->threads > b->threads) - (a->threads < b->threads),
    };
    for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        if (differences[i] != 0) {
            return differences[i];
        }
    }
    return 0;
}

static int compare_row_pointers(const void *a, const void *b) {
    return compare_groups(*(struct row *const *)a, *(struct row *const *)b);
}

/// What a row can be held against.
enum baseline { BASELINE_SCALAR, BASELINE_AUTOVEC, BASELINE_PEER };

static bool is_baseline(const struct row *row, const struct row *other, enum baseline baseline) {
    if (!row_has_time(other)) {
        return false;
    }
    switch (baseline) {
        // A user's own kernel is what is judged, not what others are judged by.
        case BASELINE_SCALAR:
            return !other->peer && other->plugin == NULL && strcmp(other->isa, "scalar") == 0;
        case BASELINE_AUTOVEC:
            return !other->peer && other->plugin == NULL && strcmp(other->isa, row->isa) == 0 &&
                   strncmp(other->tag, "autovec", strlen("autovec")) == 0;
        case BASELINE_PEER:
            return other->peer && strcmp(other->isa, row->isa) == 0;
    }
    return false;
}

/// Finds the fastest row of a group that `row` may be held against; NULL when there is none.
static const struct row *fastest(const struct row *row, struct row *const *group, size_t count,
                                 enum baseline baseline) {
    const struct row *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_baseline(row, group[i], baseline) &&
            (best == NULL || group[i]->median_ns < best->median_ns)) {
            best = group[i];
        }
    }
    return best;
}

static void derive_speedups(struct row *row, struct row *const *group, size_t count) {
    row->speedup_scalar = row->speedup_autovec = row->speedup_best_peer = UNKNOWN;
    free(row->best_peer);
    row->best_peer = NULL;
    if (!row_has_time(row)) {
        return;
    }
    const struct row *scalar = fastest(row, group, count, BASELINE_SCALAR);
    const struct row *autovec = fastest(row, group, count, BASELINE_AUTOVEC);
    const struct row *peer = fastest(row, group, count, BASELINE_PEER);
    if (scalar != NULL) {
        row->speedup_scalar = scalar->median_ns / row->median_ns;
    }
    if (autovec != NULL) {
        row->speedup_autovec = autovec->median_ns / row->median_ns;
    }
    if (peer != NULL) {
        row->speedup_best_peer = peer->median_ns / row->median_ns;
        row->best_peer = diag_alloc(strdup(peer->kernel));
    }
}

void results_derive(struct result *result) {
    if (result->count == 0) {
        return;
    }
    struct row **order = diag_alloc(calloc(result->count, sizeof(struct row *)));
    for (size_t i = 0; i < result->count; i++) {
        derive_own(&result->rows[i]);
        order[i] = &result->rows[i];
    }
    qsort(order, result->count, sizeof(struct row *), compare_row_pointers);
    for (size_t begin = 0; begin < result->count;) {
        size_t end = begin + 1;
        while (end < result->count && compare_groups(order[begin], order[end]) == 0) {
            end++;
        }
        for (size_t i = begin; i < end; i++) {
            derive_speedups(order[i], order + begin, end - begin);
        }
        begin = end;
    }
    free(order);
}
