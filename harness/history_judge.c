#include "history_judge.h"

#include <stdlib.h>
#include <string.h>

#include "changepoint.h"
#include "diag.h"
#include "stats.h"

/// A result with a time, and the commit that it belongs to.
struct entry {
    const struct history_point *point;
    size_t place;  ///< Of the commit's first result.
};

/// Tells whether two results of this commit name are of the same code.
static bool names_code(const char *commit) {
    static const char dirty[] = "-dirty";
    const size_t length = strlen(commit), suffix = strlen(dirty);
    return length > 0 && (length < suffix || strcmp(commit + length - suffix, dirty) != 0);
}

static int compare_names(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    const int order = strcmp(x->point->commit, y->point->commit);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static int compare_places(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->place != y->place) {
        return x->place > y->place ? 1 : -1;
    }
    return (x->point > y->point) - (x->point < y->point);
}

/// Gathers the results with a time by their commits. Returns the number of commits, which are to be
/// freed.
static size_t gather(const struct history_series *series, struct history_commit **commits) {
    struct entry *entries = diag_alloc(calloc(series->count + 1, sizeof(*entries)));
    double *times = diag_alloc(calloc(series->count + 1, sizeof(*times)));
    size_t count = 0;
    for (size_t i = 0; i < series->count; i++) {
        if (series->points[i].median_ns > 0.0) {
            entries[count] = (struct entry){&series->points[i], count};
            count++;
        }
    }
    qsort(entries, count, sizeof(*entries), compare_names);
    for (size_t i = 1; i < count; i++) {
        const char *commit = entries[i].point->commit;
        if (names_code(commit) && strcmp(commit, entries[i - 1].point->commit) == 0) {
            entries[i].place = entries[i - 1].place;
        }
    }
    qsort(entries, count, sizeof(*entries), compare_places);
    *commits = diag_alloc(calloc(count + 1, sizeof(**commits)));
    size_t made = 0;
    for (size_t i = 0; i < count;) {
        size_t end = i;
        for (; end < count && entries[end].place == entries[i].place; end++) {
            times[end - i] = entries[end].point->median_ns;
        }
        (*commits)[made++] =
            (struct history_commit){entries[i].point, end - i, stats_median(times, end - i)};
        i = end;
    }
    free(entries);
    free(times);
    return made;
}

static int find_steps(struct history *history, const struct history_commit *commits,
                      struct history_judgement *judgement) {
    const size_t count = judgement->commits;
    double *times = diag_alloc(calloc(count + 1, sizeof(*times)));
    for (size_t i = 0; i < count; i++) {
        times[i] = commits[i].median_ns;
    }
    struct changepoint *found = NULL;
    judgement->step_count = changepoints_find(times, count, &found);
    judgement->steps = diag_alloc(calloc(judgement->step_count + 1, sizeof(*judgement->steps)));
    int code = EXIT_DONE;
    for (size_t i = 0; i < judgement->step_count && code == EXIT_DONE; i++) {
        struct history_step *step = &judgement->steps[i];
        *step = (struct history_step){
            .before = commits[found[i].first - 1],
            .after = commits[found[i].first],
            .found = commits[found[i].found],
            .before_ns = found[i].before,
            .after_ns = found[i].after,
        };
        char label[HISTORY_LABEL_BYTES];
        history_label(label, step->after.first);
        code = history_acknowledged(history, judgement->series, label, &step->acknowledged);
    }
    const size_t newest = judgement->step_count > 0 ? found[judgement->step_count - 1].first : 0;
    judgement->median_ns = stats_median(&times[newest], count - newest);
    free(found);
    free(times);
    return code;
}

static int find_changes(struct history *history, struct history_judgement *judgement) {
    const struct history_series *series = judgement->series;
    judgement->changes = diag_alloc(calloc(series->count + 1, sizeof(*judgement->changes)));
    int code = EXIT_DONE;
    for (size_t i = 1; i < series->count && code == EXIT_DONE; i++) {
        const struct history_point *before = &series->points[i - 1];
        const struct history_point *after = &series->points[i];
        if (before->verdict != after->verdict) {
            struct history_change *change = &judgement->changes[judgement->change_count++];
            *change = (struct history_change){before, after, false};
            char label[HISTORY_LABEL_BYTES];
            history_label(label, after);
            code = history_acknowledged(history, series, label, &change->acknowledged);
        }
    }
    return code;
}

int history_judge(struct history *history, const struct history_series *series,
                  struct history_judgement *judgement) {
    *judgement = (struct history_judgement){.series = series, .median_ns = UNKNOWN};
    struct history_commit *commits = NULL;
    judgement->commits = gather(series, &commits);
    int code = find_steps(history, commits, judgement);
    free(commits);
    if (code == EXIT_DONE) {
        code = find_changes(history, judgement);
    }
    if (code != EXIT_DONE) {
        history_judgement_free(judgement);
    }
    return code;
}

void history_judgement_free(struct history_judgement *judgement) {
    free(judgement->steps);
    free(judgement->changes);
    memset(judgement, 0, sizeof(*judgement));
}

const struct history_step *history_regression(const struct history_judgement *judgement) {
    if (judgement->step_count == 0) {
        return NULL;
    }
    const struct history_step *newest = &judgement->steps[judgement->step_count - 1];
    return newest->after_ns > newest->before_ns && !newest->acknowledged ? newest : NULL;
}

const struct history_change *history_failure(const struct history_judgement *judgement) {
    if (judgement->change_count == 0) {
        return NULL;
    }
    const struct history_change *newest = &judgement->changes[judgement->change_count - 1];
    return verdict_exit(newest->after->verdict) != EXIT_DONE && !newest->acknowledged ? newest
                                                                                      : NULL;
}
