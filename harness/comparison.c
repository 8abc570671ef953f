#include "comparison.h"

#include <stdlib.h>
#include <string.h>

#include "diag.h"

static const char *const words[] = {
    [COMPARISON_SAME] = "SAME",
    [COMPARISON_FASTER] = "FASTER",
    [COMPARISON_SLOWER] = "SLOWER",
    [COMPARISON_INCONCLUSIVE] = "INCONCLUSIVE",
    [COMPARISON_ENV_DRIFT] = "ENV-DRIFT",
    [COMPARISON_MISSING] = "MISSING",
    [COMPARISON_NEW] = "NEW",
    [COMPARISON_ERROR] = "ERROR",
};

const char *comparison_text(enum comparison_verdict verdict) {
    return words[verdict];
}

static int verdict_code(enum comparison_verdict verdict, enum comparison_gate gate) {
    switch (verdict) {
        case COMPARISON_SLOWER:
        case COMPARISON_ERROR:
        case COMPARISON_MISSING:
            return EXIT_FOUND;
        case COMPARISON_INCONCLUSIVE:
            return gate == GATE_INCONCLUSIVE ? EXIT_INCONCLUSIVE : EXIT_DONE;
        case COMPARISON_SAME:
        case COMPARISON_FASTER:
        case COMPARISON_ENV_DRIFT:
        case COMPARISON_NEW:
            return EXIT_DONE;
    }
    return EXIT_FOUND;
}

int comparison_exit(const struct comparison_report *report, enum comparison_gate gate) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < report->count && gate != GATE_NONE; i++) {
        code = diag_worst(code, verdict_code(report->rows[i].verdict, gate));
    }
    return code;
}

void comparison_free(struct comparison_report *report) {
    for (size_t i = 0; i < report->count; i++) {
        struct comparison *row = &report->rows[i];
        free(row->name);
        free(row->old_name);
        free(row->kernel);
        free(row->op);
        free(row->reason);
    }
    for (size_t i = 0; i < report->notes; i++) {
        free(report->note[i]);
    }
    free(report->rows);
    free(report->note);
    free(report->command);
    free(report->base_label);
    free(report->new_label);
    free(report->method);
    json_decref(report->base_context);
    json_decref(report->new_context);
    memset(report, 0, sizeof(*report));
}
