/// Holds the JSON of `mhabench attend` on stdin against what a head's weights must look like.
/// usage: attend_weights HEAD CHECK [NUMBER...]
///   sums           every row sums to 1
///   causal         no query sees a key ahead, and every one sees itself
///   largest BACK   every query's largest weight is BACK tokens before it; the first ones' where
///                  there is no such token, at the first
///   falls          weights fall off with the distance, as far as the float can tell
///   percent N...   the weights, in per cent, to half a per cent
///   near A B C     token A sees B more than C
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const json_t *rows;
static size_t tokens;

static double weight(size_t query, size_t key) {
    const json_t *value = json_array_get(json_array_get(rows, query), key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int wrong(const char *what, size_t query, size_t key) {
    fprintf(stderr, "%s: query %zu, key %zu: %g\n", what, query, key, weight(query, key));
    return 1;
}

/// Rounding of a softmax in float over a few hundred keys is far below this.
static const double tolerance = 1e-5;

static int check_sums(void) {
    for (size_t q = 0; q < tokens; q++) {
        double sum = 0;
        for (size_t k = 0; k < tokens; k++) {
            sum += weight(q, k);
        }
        if (!(fabs(sum - 1) <= tolerance)) {
            return wrong("the row's sum is not 1", q, 0);
        }
    }
    return 0;
}

static int check_causal(void) {
    for (size_t q = 0; q < tokens; q++) {
        for (size_t k = 0; k < tokens; k++) {
            if (k > q ? !(fabs(weight(q, k)) <= 0) : k == q && !(weight(q, k) > 0)) {
                return wrong("not causal", q, k);
            }
        }
    }
    return 0;
}

static int check_largest(size_t back) {
    for (size_t q = 0; q < tokens; q++) {
        const size_t at = q >= back ? q - back : 0;
        for (size_t k = 0; k < tokens; k++) {
            if (k != at && !(weight(q, at) > weight(q, k))) {
                return wrong("the largest weight is elsewhere", q, k);
            }
        }
    }
    return 0;
}

static int check_falls(void) {
    for (size_t q = 0; q < tokens; q++) {
        // To both sides, over the distances at which the sum of the cosines is still large.
        for (size_t d = 0; d < 4; d++) {
            if ((q + d + 1 < tokens && !(weight(q, q + d) > weight(q, q + d + 1))) ||
                (q >= d + 1 && !(weight(q, q - d) > weight(q, q - d - 1)))) {
                return wrong("it does not fall off", q, d);
            }
        }
    }
    return 0;
}

static int check_percent(size_t count, char **numbers) {
    if (count != tokens * tokens) {
        fprintf(stderr, "%zu numbers for %zu tokens\n", count, tokens);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(100 * weight(i / tokens, i % tokens) - strtod(numbers[i], NULL)) < 0.5)) {
            return wrong("another percentage", i / tokens, i % tokens);
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    json_t *all = json_loadf(stdin, JSON_REJECT_DUPLICATES, NULL);
    if (argc < 3 || all == NULL) {
        fprintf(stderr, "no JSON\n");
        return 2;
    }
    tokens = json_array_size(json_object_get(all, "tokens"));
    size_t i;
    json_t *head;
    json_array_foreach(json_object_get(all, "heads"), i, head) {
        const char *name = json_string_value(json_object_get(head, "name"));
        if (strcmp(name != NULL ? name : "", argv[1]) == 0) {
            rows = json_object_get(head, "weights");
        }
    }
    int code = 1;
    if (tokens == 0 || json_array_size(rows) != tokens) {
        fprintf(stderr, "no weights of %s\n", argv[1]);
    } else if (strcmp(argv[2], "sums") == 0) {
        code = check_sums();
    } else if (strcmp(argv[2], "causal") == 0) {
        code = check_causal();
    } else if (strcmp(argv[2], "largest") == 0 && argc == 4) {
        code = check_largest(strtoul(argv[3], NULL, 10));
    } else if (strcmp(argv[2], "falls") == 0) {
        code = check_falls();
    } else if (strcmp(argv[2], "percent") == 0) {
        code = check_percent((size_t)argc - 3, argv + 3);
    } else if (strcmp(argv[2], "near") == 0 && argc == 6) {
        const size_t a = strtoul(argv[3], NULL, 10), b = strtoul(argv[4], NULL, 10);
        code = weight(a, b) > weight(a, strtoul(argv[5], NULL, 10)) ? 0 : wrong("not nearer", a, b);
    }
    json_decref(all);
    return code;
}
